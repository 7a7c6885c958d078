#pragma once
// Tables of the results database. The version is `PRAGMA user_version`; each step from one version to the next is one
// script.

#include "harness/store/sqlite.h"

namespace fathom::store {

/// The newest schema this build reads and writes.
inline constexpr int kSchemaVersion = 1;
/// `PRAGMA application_id` of a Fathom database ("FTHM").
inline constexpr int kApplicationId = 0x4654484d;

/// Creates the tables of an empty database or brings an older one up to date, in one transaction.
/// \throws StoreError for a newer schema (names both versions) and for a database of another program.
void migrate(Database& database);

/// Checks a database that is only read. \throws StoreError as above, and for an older schema or an empty file.
void check_schema(Database& database);

}  // namespace fathom::store
