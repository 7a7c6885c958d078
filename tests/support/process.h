#pragma once
// Runs the fathom binary as a user would, in a folder of its own.

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temp_folder.h"

namespace fathom::test {

struct ProcessResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// A folder that goes away with the object; it is the working folder and the model cache of the processes started from
/// it.
class Workspace {
 public:
  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  /// Starts `fathom ARGS`; output goes to files in the workspace.
  pid_t start(const std::vector<std::string>& args) const {
    const pid_t child = fork();
    if (child != 0) return child;
    if (chdir(folder_.path().c_str()) != 0) _exit(126);
    setenv("FATHOM_CACHE", path("cache").c_str(), 1);
    const int out = open("stdout.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err = open("stderr.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    std::vector<char*> argv = {const_cast<char*>(FATHOM_BINARY)};
    for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    execv(FATHOM_BINARY, argv.data());
    _exit(127);
  }

  ProcessResult wait(pid_t child) const {
    int status = 0;
    waitpid(child, &status, 0);
    ProcessResult result;
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.out = read("stdout.txt");
    result.err = read("stderr.txt");
    return result;
  }

  ProcessResult run(const std::vector<std::string>& args) const { return wait(start(args)); }

 private:
  TempFolder folder_;
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace fathom::test
