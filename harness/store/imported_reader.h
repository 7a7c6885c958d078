#pragma once
// The read side of imported results, for result_reader.cpp.

#include <vector>

#include "harness/store/imported.h"
#include "harness/store/sqlite.h"

namespace fathom::store {

/// All sources, in the order they were first imported. \throws StoreError
std::vector<ImportedSource> read_imports(Database& database);

}  // namespace fathom::store
