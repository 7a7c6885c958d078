#pragma once
// Declares the entry function of every command in commands.inc; each cmd_NAME.cpp defines its own by qualified name.

#include "harness/cli/command.h"

namespace fathom::cli::entries {

#define FATHOM_COMMAND(name) CommandEntry name##_entry();
#include "harness/cli/commands.inc"
#undef FATHOM_COMMAND

}  // namespace fathom::cli::entries
