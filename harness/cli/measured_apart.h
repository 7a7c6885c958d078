#pragma once
// Measurements in processes of their own.

#include <functional>
#include <string>

namespace fathom::cli {

/// What `measure` returns in a forked process, so that peak memory is that of one question.
/// \param what  names the question in messages.
/// \throws ModelError  with the message of what `measure` threw, or if the process ended without an answer.
std::string measured_apart(const std::function<std::string()>& measure, const std::string& what);

}  // namespace fathom::cli
