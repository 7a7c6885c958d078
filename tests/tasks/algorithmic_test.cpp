// Algorithmic answers, checked by evaluators that share no code with the tasks (tasks specification 2.5).

#include <algorithm>
#include <set>

#include "harness/core/text_util.h"
#include "tasks/algorithm_items.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/oracle_solver.h"
#include "tests/support/task_fixture.h"

namespace {

using namespace fathom;
using task::Sample;

std::unique_ptr<task::Task> make_algorithm(std::string_view name, const task::TaskContext& context,
                                           const std::map<std::string, std::string>& options = {{"shots", "0"}}) {
  const task::TaskEntry& entry = tasks::registry().at(name);
  return entry.make(entry, task::TaskVariant::kBalanced, OptionSource("[task.x]", options), context);
}

/// What stands behind `marker` up to the answer prefix.
std::string input_of(const Sample& sample, const std::string& marker) {
  const std::size_t begin = sample.prompt_text.find(marker) + marker.size();
  return std::string(trim(sample.prompt_text.substr(begin, sample.prompt_text.rfind("\nResult:") - begin)));
}

/// A second evaluator of orders, on the words themselves: what an order says, spelled out from its end.
std::vector<std::string> spell_order(const std::vector<std::string>& order) {
  for (const char* joint : {"then", "after"}) {
    const auto at = std::find(order.begin(), order.end(), joint);
    if (at == order.end()) continue;
    auto first = spell_order({order.begin(), at});
    auto second = spell_order({at + 1, order.end()});
    if (std::string(joint) == "after") first.swap(second);
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }
  const std::string& last = order.back();
  if (last == "triple" || last == "double" || last == "circle") {
    const auto once = spell_order({order.begin(), order.end() - 1});
    std::vector<std::string> out;
    for (int i = 0; i < (last == "circle" ? 4 : last == "triple" ? 3 : 2); ++i)
      out.insert(out.end(), once.begin(), once.end());
    return out;
  }
  if (order.size() == 2) return {order[1], order[0]};
  return order;
}

}  // namespace

TEST_CASE("algo: sizes run from 2 to twice the trained one, in turn", "[tasks][algo]") {
  const auto fixture = test::english_fixture();
  const auto task = make_algorithm("copy", fixture->context());
  CHECK(!task->sweeps_length());
  for (std::int64_t index = 0; index < 39; ++index) {
    const Sample sample = task->make_sample({}, index, 1);
    CHECK(sample.haystack_units == index + 2);
    CHECK(test::words_of(sample.references.front()).size() == static_cast<std::size_t>(index + 2));
    CHECK(sample.length_tokens == sample.prompt_tokens() + sample.generation_budget);
  }
  CHECK(task->make_sample({}, 39, 1).haystack_units == 2);
}

TEST_CASE("algo: copies and reversals", "[tasks][algo]") {
  const auto fixture = test::english_fixture();
  const auto answer = [&fixture](std::string_view name, const std::string& marker) {
    const Sample sample = make_algorithm(name, fixture->context())->make_sample({}, 4, 1);
    return std::pair(input_of(sample, marker), sample.references.front());
  };
  const auto backwards = [](const std::string& text) {
    auto words = test::words_of(text);
    std::reverse(words.begin(), words.end());
    return join(words, " ");
  };
  const auto [copy_in, copy_out] = answer("copy", "again:");
  CHECK(copy_in == copy_out);
  const auto [twice_in, twice_out] = answer("copy_twice", "middle:");
  CHECK(twice_out == twice_in + " / " + twice_in);
  const auto [long_in, long_out] = answer("copy_long", "length:");
  CHECK(long_out == long_in + " " + long_in);
  const auto [back_in, back_out] = answer("reverse", "front:");
  CHECK(back_out == backwards(back_in));
  const auto [both_in, both_out] = answer("reverse_copy", "given:");
  CHECK(both_out == backwards(both_in) + " / " + both_in);
  const auto [swap_in, swap_out] = answer("copy_swap", "here:");
  CHECK(test::words_of(swap_in).size() == test::words_of(swap_out).size());
  CHECK(test::words_of(swap_in).front() != test::words_of(swap_out).front());
}

TEST_CASE("algo: sums, sorting, parity", "[tasks][algo]") {
  const auto fixture = test::english_fixture();
  for (std::int64_t index = 0; index < 20; ++index) {
    const auto sample_of = [&](std::string_view name) {
      return make_algorithm(name, fixture->context())->make_sample({}, index, 1);
    };
    const Sample add = sample_of("add");
    // Up to 16 digits: the sum fits an unsigned 64-bit integer.
    const auto words = test::words_of(input_of(add, "What do "));
    CHECK(std::to_string(std::stoull(words[0]) + std::stoull(words[2])) == add.references.front());
    CHECK(static_cast<std::int64_t>(std::max(words[0].size(), words[2].size())) == add.haystack_units);

    std::int64_t total = 0;
    for (const std::string& digit : test::words_of(input_of(sample_of("sum"), "to?"))) total += std::stoll(digit);
    CHECK(std::to_string(total) == sample_of("sum").references.front());
    const std::string bits = input_of(sample_of("parity"), "number?");
    const bool odd = std::count(bits.begin(), bits.end(), '1') % 2 == 1;
    CHECK(sample_of("parity").references.front() == (odd ? "odd" : "even"));
    const auto numbers = test::words_of(input_of(sample_of("sort"), "order:"));
    std::vector<std::int64_t> sorted;
    for (const std::string& number : numbers) sorted.push_back(std::stoll(number));
    std::sort(sorted.begin(), sorted.end());
    std::string expected;
    for (const std::int64_t number : sorted) expected += (expected.empty() ? "" : " ") + std::to_string(number);
    CHECK(sample_of("sort").references.front() == expected);
  }
}

TEST_CASE("algo: chains of signs multiply out, polynomials are taken modulo 10", "[tasks][algo]") {
  const auto fixture = test::english_fixture();
  for (std::int64_t index = 0; index < 15; ++index) {
    const Sample chain = make_algorithm("chain", fixture->context())->make_sample({}, index, 1);
    const std::string input = chain.prompt_text.substr(0, chain.prompt_text.find(". What is "));
    const std::string asked = chain.prompt_text.substr(chain.prompt_text.find(". What is ") + 10, 1);
    std::map<std::string, int> values;
    for (const std::string& clause : split(input, ';')) {
      const auto words = test::words_of(clause);
      values[words[0]] = words.size() == 3 ? std::stoi(words[2]) : (words[2] == "+" ? 1 : -1) * values.at(words[3]);
    }
    CHECK(std::to_string(values.at(asked)) == chain.references.front());

    const Sample poly = make_algorithm("poly", fixture->context())->make_sample({}, index, 1);
    const std::int64_t x = std::stoll(input_of(poly, "x = "));
    std::int64_t total = 0;
    for (const std::string& word : test::words_of(replace_all(input_of(poly, "10:"), " x^", "x"))) {
      if (word == "+") continue;
      std::int64_t term = std::stoll(word);
      for (std::int64_t d = std::stoll(word.substr(word.find('x') + 1)); d > 0; --d) term *= x;
      total += term;
    }
    CHECK(std::to_string(((total % 10) + 10) % 10) == poly.references.front());
  }
}

TEST_CASE("algo: two evaluators agree on 10,000 orders", "[tasks][algo]") {
  const auto fixture = test::english_fixture();
  const auto words = split_list(fixture->context().pack->text("algo", "cmd_words"));
  RngStream rng(RngKey("orders"));
  const auto clause = [&] {
    std::vector<std::string> out = {words[rng.uniform_index(4)]};
    if (rng.uniform_index(2) == 1) {
      out.push_back(words[4 + rng.uniform_index(2)]);
      if (rng.uniform_index(2) == 1) out.push_back(words[6]);
    }
    const auto times = rng.uniform_index(3);
    if (times > 0) out.push_back(words[6 + times]);
    return out;
  };
  for (int i = 0; i < 10000; ++i) {
    std::vector<std::string> order = clause();
    const auto joint = rng.uniform_index(3);
    if (joint > 0) {
      order.push_back(words[8 + joint]);
      const auto second = clause();
      order.insert(order.end(), second.begin(), second.end());
    }
    REQUIRE(tasks::run_order(order, words) == spell_order(order));
  }
  const Sample sample = make_algorithm("cmd", fixture->context())->make_sample({}, 9, 1);
  const auto steps = spell_order(test::words_of(input_of(sample, "steps:")));
  CHECK(ascii_lower(sample.references.front()) == join(steps, " "));
  CHECK(static_cast<std::int64_t>(steps.size()) == sample.haystack_units);
}

TEST_CASE("algo: worked examples have the size of the question; a size that cannot be is refused", "[tasks][algo]") {
  const auto fixture = test::english_fixture();
  const Sample shown =
      make_algorithm("copy", fixture->context(), {{"shots", "3"}, {"size", "7"}})->make_sample({}, 0, 1);
  std::size_t n = 0;
  for (std::size_t at = shown.prompt_text.find("Result:"); at != std::string::npos;
       at = shown.prompt_text.find("Result:", at + 1)) {
    ++n;
  }
  CHECK(n == 4);
  CHECK(shown.haystack_units == 7);
  try {
    make_algorithm("copy", fixture->context(), {{"size", "41"}});
    FAIL("no error");
  } catch (const ConfigError& error) {
    CHECK(starts_with(error.what(), "copy: size = 41 cannot be asked for; allowed: 2, 3, "));
  }
}
