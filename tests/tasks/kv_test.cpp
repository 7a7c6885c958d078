#include <map>
#include <nlohmann/json.hpp>

#include "harness/core/text_util.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/task_fixture.h"

namespace {

using namespace fathom;
using task::Sample;

std::unique_ptr<task::Task> make_kv(const task::TaskContext& context,
                                    const std::map<std::string, std::string>& options = {}) {
  const task::TaskEntry& entry = tasks::registry().at("kv");
  return entry.make(entry, task::TaskVariant::kBalanced, OptionSource("[task.kv]", options), context);
}

/// Keys in order, and the object, of an English prompt.
nlohmann::ordered_json object_of(const Sample& sample) {
  const std::size_t begin = sample.prompt_text.find('{');
  const std::size_t end = sample.prompt_text.find('}');
  return nlohmann::ordered_json::parse(sample.prompt_text.substr(begin, end - begin + 1));
}

std::string queried_key(const Sample& sample) {
  const std::size_t begin = sample.prompt_text.find("for the key \"") + 13;
  return sample.prompt_text.substr(begin, 36);
}

std::int64_t index_of(const nlohmann::ordered_json& object, const std::string& key) {
  std::int64_t i = 0;
  for (const auto& item : object.items()) {
    if (item.key() == key) return i;
    ++i;
  }
  return -1;
}

}  // namespace

TEST_CASE("kv: the object is valid JSON and holds the answer under the key that is asked for", "[tasks][kv]") {
  const auto fixture = test::english_fixture();
  const auto task = make_kv(fixture->context());
  for (const std::int32_t depth : {0, 1000, 3700, 5000, 10000}) {
    const Sample sample = task->make_sample({3000, depth}, 1, 1);
    const auto object = object_of(sample);
    const auto n = static_cast<std::int64_t>(object.size());
    CHECK(n == sample.haystack_units);
    CHECK(object.at(queried_key(sample)).get<std::string>() == sample.references.front());
    CHECK(index_of(object, queried_key(sample)) == (n - 1) * depth / 10000);
    CHECK(sample.metric == task::TaskMetric::kPart);
    CHECK(ends_with(sample.prompt_text, "Value: \""));
    CHECK(sample.answer_text == sample.references.front());
  }
}

TEST_CASE("kv: all depths of a sample share the object, longer ones begin with it", "[tasks][kv][pairing]") {
  const auto fixture = test::english_fixture();
  const auto task = make_kv(fixture->context());
  const auto first = object_of(task->make_sample({2000, 0}, 3, 1));
  CHECK(first == object_of(task->make_sample({2000, 10000}, 3, 1)));
  const auto longer = object_of(task->make_sample({4000, 0}, 3, 1));
  CHECK(longer.size() > first.size());
  CHECK(longer.begin().key() == first.begin().key());
  CHECK(first != object_of(task->make_sample({2000, 0}, 4, 1)));
}

TEST_CASE("kv: fit = 0 runs the paper's sizes and places, and measures the length", "[tasks][kv]") {
  const auto fixture = test::english_fixture();
  const auto task = make_kv(fixture->context(), {{"fit", "0"}});
  CHECK_FALSE(task->sweeps_depth());
  CHECK_FALSE(task->sweeps_length());
  std::map<std::int64_t, std::vector<std::int64_t>> places;
  for (std::int64_t i = 0; i < 15; ++i) {
    const Sample sample = task->make_sample({}, i, 1);
    CHECK(sample.length_tokens == sample.prompt_tokens() + sample.generation_budget);
    CHECK(sample.key.find("|data=-;fit=0;n=-|L=-|d=-|") != std::string::npos);
    places[sample.haystack_units].push_back(index_of(object_of(sample), queried_key(sample)));
  }
  const std::map<std::int64_t, std::vector<std::int64_t>> expected = {
      {75, {0, 18, 37, 55, 74}}, {140, {0, 34, 69, 104, 139}}, {300, {0, 74, 149, 224, 299}}};
  CHECK(places == expected);
  CHECK(make_kv(fixture->context(), {{"fit", "0"}, {"n", "140"}})->make_sample({}, 1, 1).haystack_units == 140);
}

TEST_CASE("kv: the closed vocabulary has pairs of a key and a value word, as many as there are keys", "[tasks][kv]") {
  const auto fixture = test::synthetic_fixture();
  const auto task = make_kv(fixture->context());
  const Sample sample = task->make_sample({100, 5000}, 0, 1);
  CHECK(starts_with(sample.prompt_text, "note k"));
  CHECK(sample.haystack_units == 48);  // 1 + 2 n + 2 + the answer
  CHECK(sample.slack_tokens() == 0);
  try {
    task->make_sample({4096, 0}, 0, 1);
    FAIL("no error");
  } catch (const task::TooLongError& error) {
    CHECK(error.largest_length_tokens() == 405);
    CHECK(task->largest_length_tokens(1) == std::optional<std::int64_t>(405));
    CHECK(std::string(error.what()) ==
          "kv: length 4096 needs more haystack than there is: there are 200 keys and 200 values of its forms, and no "
          "two pairs "
          "share one; largest "
          "feasible length here is 405");
  }
  try {
    make_kv(fixture->context(), {{"fit", "0"}});
    FAIL("no error");
  } catch (const ConfigError& error) {
    CHECK(std::string(error.what()) ==
          "kv: 300 pairs need as many keys and values, but there are 200 and 200; set n or fit = 1");
  }
}
