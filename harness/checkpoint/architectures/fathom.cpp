#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/fathom_config.h"

namespace fathom::checkpoint {

ArchitectureEntry families::fathom_entry() {
  ArchitectureEntry entry{};
  entry.name = "fathom";
  entry.summary = "Models trained here: any position scheme, canonical tensor names.";
  entry.config_from_json = &parse_fathom_config;
  entry.names_are_canonical = true;
  return entry;
}

}  // namespace fathom::checkpoint
