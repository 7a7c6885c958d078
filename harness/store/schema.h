#pragma once
// Tables of the results database. The version is `PRAGMA user_version`; each step from one version to the next is one
// script.

#include "harness/store/sqlite.h"

namespace fathom::store {

/// The newest schema this build reads and writes.
inline constexpr int kSchemaVersion = 3;
/// `PRAGMA application_id` of a Fathom database ("FTHM").
inline constexpr int kApplicationId = 0x4654484d;

/// Creates the tables of an empty database or brings an older one up to date, in one transaction.
/// \param wanted  an older schema than this build's, for tests of the steps.
/// \throws StoreError for a newer schema (names both versions) and for a database of another program.
void migrate(Database& database, int wanted = kSchemaVersion);

/// Checks a database that is only read. \throws StoreError as above, and for an older schema or an empty file.
void check_schema(Database& database);

}  // namespace fathom::store
