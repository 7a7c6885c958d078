// Time and memory of generating samples with a real tokenizer; not a test.
// Build target `tasks_bench`; arguments: MODEL.gguf [samples] [threads] [task or group…].

#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "harness/checkpoint/gguf_file.h"
#include "harness/checkpoint/tokenizer_source.h"
#include "tasks/tasks.h"

namespace {

using namespace fathom;  // NOLINT

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct BenchJob {
  const task::Task* task = nullptr;
  std::string name;
  std::int64_t length = 0;
  std::int64_t index = 0;
};

struct BenchTimes {
  std::mutex mutex;
  std::map<std::string, double> by_task;
  std::int64_t tokens = 0;
};

void run_job(const BenchJob& job, BenchTimes& times) {
  const double start = seconds_now();
  std::int64_t tokens = 0;
  try {
    tokens = job.task->make_sample({job.length, std::nullopt}, job.index, 1).prompt_tokens();
  } catch (const DataError& error) {
    fmt::print("{} {}: {}\n", job.name, job.length, error.what());
  }
  const std::lock_guard<std::mutex> lock(times.mutex);
  times.by_task[job.name] += seconds_now() - start;
  times.tokens += tokens;
}

void run_bench(const std::vector<std::string>& arguments) {
  const checkpoint::GgufFile file = checkpoint::GgufFile::open(arguments.at(0));
  const auto tokenizer = checkpoint::make_gguf_tokenizer(file);
  const text::PromptAssembler assembler(*tokenizer, text::PromptStyle::kChat, text::chat_template("chatml"));
  const std::int64_t n_samples = arguments.size() > 1 ? std::stoll(arguments[1]) : 10;
  const std::size_t n_threads = arguments.size() > 2 ? std::stoull(arguments[2]) : 2;
  task::TaskContext context;
  context.assembler = &assembler;
  context.pack = text::PromptPack::builtin("en");
  context.n_samples = n_samples;

  std::vector<task::TaskName> names;
  for (std::size_t i = 3; i < arguments.size(); ++i) {
    for (const task::TaskName& name : tasks::expand_task_name(arguments[i])) names.push_back(name);
  }
  if (names.empty()) names = tasks::expand_task_name("ruler@balanced");
  std::vector<std::unique_ptr<task::Task>> made;
  std::vector<BenchJob> jobs;
  for (const task::TaskName& name : names) {
    const task::TaskEntry& entry = tasks::registry().at(name.name);
    made.push_back(entry.make(entry, name.variant, {}, context));
    for (std::int64_t index = 0; index < n_samples; ++index) {
      for (std::int64_t length = 4096; length <= 131072; length *= 2) {
        jobs.push_back({made.back().get(), name.full(), length, index});
      }
    }
  }
  BenchTimes times;
  std::atomic<std::size_t> next{0};
  const double start = seconds_now();
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < n_threads; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = next++; i < jobs.size(); i = next++) run_job(jobs[i], times);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double wall = seconds_now() - start;
  for (const auto& [name, spent] : times.by_task) fmt::print("{:<28} {:7.2f} s\n", name, spent);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{} samples, {} tokens, {} threads: {:.1f} s, peak {:.0f} MB\n", jobs.size(), times.tokens, n_threads,
             wall, static_cast<double>(usage.ru_maxrss) / 1024);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 2) {
      std::fprintf(stderr, "usage: tasks_bench MODEL.gguf [samples] [threads] [task or group…]\n");
      return 2;
    }
    run_bench({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tasks_bench: %s\n", error.what());
    return 1;
  }
}
