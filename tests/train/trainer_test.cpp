// Trainings on a tiny decoder: files, cache, interruption, bit-identical resume.

#include "harness/train/trainer.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/train/train_state.h"
#include "tests/support/catch.h"

namespace {

namespace fs = std::filesystem;
using fathom::train::TrainCallbacks;
using fathom::train::TrainOutcome;
using fathom::train::TrainSpec;

TrainSpec tiny_spec(const std::string& recipe = "A", const std::string& position = "rope") {
  TrainSpec spec;
  spec.recipe = recipe;
  spec.position = position;
  spec.context = 64;
  spec.d_model = 16;
  spec.n_heads = 2;
  spec.d_ff = 16;
  spec.max_steps = 30;
  spec.vocabulary = {20, 20, 20, 20, 0, 0, 0};
  return spec;
}

/// An empty folder that goes away with the test.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_((fs::temp_directory_path() / ("fathom_train_" + name + "_" + std::to_string(::getpid()))).string()) {
    fs::remove_all(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string bytes(const std::string& file) const {
    std::ifstream in(path_ + "/" + file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

 private:
  std::string path_;
};

class StopAfter : public fathom::StopToken {
 public:
  explicit StopAfter(int questions) : left_(questions) {}
  bool stop_requested() const override { return left_-- <= 0; }

 private:
  mutable int left_;
};

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const fathom::Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("trainer: a training leaves a model folder and returns from it the next time", "[train]") {
  Folder folder("files");
  const TrainOutcome first = fathom::train::train(tiny_spec(), folder.path(), {});
  CHECK_FALSE(first.from_cache);
  CHECK_FALSE(first.mastered);
  CHECK(first.steps == 30);
  for (const char* file : {"config.json", "model.safetensors", "tokenizer.json", "training.jsonl"})
    CHECK(fs::exists(folder.path() + "/" + file));
  CHECK_FALSE(fs::exists(folder.path() + "/resume.state"));
  const TrainOutcome second = fathom::train::train(tiny_spec(), folder.path(), {});
  CHECK(second.from_cache);
  CHECK(second.steps == 30);
  TrainSpec other = tiny_spec();
  other.seed = 9;
  CHECK(message_of([&] { fathom::train::train(other, folder.path(), {}); }).find("holds a model of other settings") !=
        std::string::npos);
  std::istringstream log(folder.bytes("training.jsonl"));
  std::string line;
  std::vector<nlohmann::json> lines;
  while (std::getline(log, line)) lines.push_back(nlohmann::json::parse(line));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["step"] == 25);
  CHECK(lines[0]["length_tokens"] == 64);
  CHECK(lines[0]["accuracy"].contains("copy"));
  CHECK(lines[1]["event"] == "finished");
  CHECK(lines[1]["mastered"] == false);
}

TEST_CASE("trainer: interrupted at any step and continued, the weights are the same bit for bit", "[train][resume]") {
  for (const char* recipe : {"A", "B"}) {
    const TrainSpec spec = tiny_spec(recipe, std::string(recipe) == "A" ? "rope" : "learned");
    Folder straight("straight"), broken("broken");
    fathom::train::train(spec, straight.path(), {});
    int n_stops = 0;
    for (const int questions : {1, 7, 13, 100}) {
      const StopAfter stop(questions);
      TrainCallbacks callbacks;
      callbacks.stop = &stop;
      try {
        fathom::train::train(spec, broken.path(), callbacks);
      } catch (const fathom::Interrupted& error) {
        ++n_stops;
        CHECK(std::string(error.what()).find("the same command goes on from there") != std::string::npos);
        CHECK(fs::exists(broken.path() + "/resume.state"));
        CHECK_FALSE(fs::exists(broken.path() + "/config.json"));
      }
    }
    CHECK(n_stops == 3);
    REQUIRE(straight.bytes("model.safetensors").size() > 1000);
    CHECK(straight.bytes("model.safetensors") == broken.bytes("model.safetensors"));
    CHECK(straight.bytes("config.json") == broken.bytes("config.json"));
  }
}

TEST_CASE("trainer: another seed gives other weights, the same seed the same", "[train]") {
  TrainSpec spec = tiny_spec();
  spec.max_steps = 3;
  Folder one("seed1"), again("seed1b"), two("seed2");
  fathom::train::train(spec, one.path(), {});
  fathom::train::train(spec, again.path(), {});
  spec.seed = 2;
  fathom::train::train(spec, two.path(), {});
  CHECK(one.bytes("model.safetensors") == again.bytes("model.safetensors"));
  CHECK(one.bytes("model.safetensors") != two.bytes("model.safetensors"));
}

TEST_CASE("trainer: damaged and foreign states are refused with the file's name", "[train][resume]") {
  Folder folder("damaged");
  const StopAfter stop(5);
  TrainCallbacks callbacks;
  callbacks.stop = &stop;
  CHECK_THROWS_AS(fathom::train::train(tiny_spec(), folder.path(), callbacks), fathom::Interrupted);
  TrainSpec other = tiny_spec();
  other.seed = 3;
  CHECK(message_of([&] {
          fathom::train::train(other, folder.path(), {});
        }).find("belongs to a training with other settings") != std::string::npos);
  const std::string path = folder.path() + "/resume.state", whole = folder.bytes("resume.state");
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, whole.size() / 2, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    CHECK(message_of([&] { fathom::train::train(tiny_spec(), folder.path(), {}); }) ==
          "train: '" + path + "' is damaged; delete it to train from the start");
  }
  std::string flipped = whole;
  flipped[whole.size() / 3] = static_cast<char>(flipped[whole.size() / 3] ^ 1);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << flipped;
  CHECK(message_of([&] { fathom::train::train(tiny_spec(), folder.path(), {}); }).find("is damaged") !=
        std::string::npos);
}

TEST_CASE("trainer: two processes do not train one folder at a time", "[train]") {
  Folder folder("lock");
  fs::create_directories(folder.path());
  const fathom::train::FolderLock held(folder.path());
  CHECK(message_of([&] { fathom::train::train(tiny_spec(), folder.path(), {}); }) ==
        "train: another process is training this model in '" + folder.path() +
            "'; wait for it to end, then run the same command again");
}

TEST_CASE("trainer: every scheme trains a step under both recipes", "[train]") {
  for (const char* recipe : {"A", "B"}) {
    for (const char* position : {"rope", "nope", "alibi", "learned"}) {
      INFO(recipe << " " << position);
      TrainSpec spec = tiny_spec(recipe, position);
      spec.max_steps = 2;
      spec.tasks = {"niah", "variable_tracking", "kv"};
      Folder folder("each");
      const TrainOutcome outcome = fathom::train::train(spec, folder.path(), {});
      CHECK(outcome.steps == 2);
    }
  }
}

TEST_CASE("trainer: progress is called with the settings' names and rising steps", "[train]") {
  Folder folder("progress");
  TrainSpec spec = tiny_spec();
  spec.tasks = {"niah", "kv"};
  TrainCallbacks callbacks;
  std::vector<fathom::train::TrainProgress> seen;
  callbacks.progress = [&seen](const fathom::train::TrainProgress& p) { seen.push_back(p); };
  fathom::train::train(spec, folder.path(), callbacks);
  REQUIRE(seen.size() >= 2);
  CHECK(seen.back().step == 30);
  CHECK(seen.back().decaying);
  CHECK(seen.front().mastery.count("niah") == 1);
  CHECK(seen.front().mastery.count("kv") == 1);
  CHECK(seen.back().loss > 0);
}

TEST_CASE("trainer: a folder that cannot be made is a data error", "[train]") {
  CHECK(message_of([] {
          fathom::train::train(tiny_spec(), "/proc/no/such", {});
        }).find("train: cannot make the folder '/proc/no/such'") == 0);
}
