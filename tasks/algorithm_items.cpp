#include "tasks/algorithm_items.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::tasks {
namespace {

constexpr std::int64_t kSmallestSize = 2;
constexpr std::uint64_t kSymbols = 100;
constexpr std::uint64_t kSortSymbols = 50;
constexpr std::string_view kSymbolOnsets = "bcdfghjklmnpqrstvwxz";
constexpr std::string_view kSymbolVowels = "aeiou";
constexpr std::int64_t kMostSteps = 48;

bool is_closed_pack(const task::TaskContext& context) {
  return context.pack->closed_vocabulary();
}

std::string algo_text(const task::TaskContext& context, std::string_view key) {
  return context.pack->text("algo", key);
}

/// Two letters, or a key word.
std::string symbol(const task::TaskContext& context, std::uint64_t i) {
  if (is_closed_pack(context)) return "k" + std::to_string(i);
  return {kSymbolOnsets[i / kSymbolVowels.size()], kSymbolVowels[i % kSymbolVowels.size()]};
}

std::vector<std::string> draw_symbols(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < n; ++i) out.push_back(symbol(context, rng.uniform_index(kSymbols)));
  return out;
}

/// A whole number; in a closed vocabulary its sign and digits are words.
std::string number_text(const task::TaskContext& context, std::int64_t value) {
  const std::string digits = std::to_string(std::llabs(value));
  if (!is_closed_pack(context)) return value < 0 ? "-" + digits : digits;
  std::string out = value < 0 ? "-" : "";
  for (const char digit : digits) {
    if (!out.empty()) out += ' ';
    out += digit;
  }
  return out;
}

/// A number given by its digits, the highest first.
std::string digits_text(const task::TaskContext& context, const std::string& digits) {
  if (!is_closed_pack(context)) return digits;
  std::string out;
  for (const char digit : digits) {
    if (!out.empty()) out += ' ';
    out += digit;
  }
  return out;
}

std::vector<std::string> reversed(std::vector<std::string> items) {
  std::reverse(items.begin(), items.end());
  return items;
}

std::string with_mark(const task::TaskContext& context, const std::vector<std::string>& first,
                      const std::vector<std::string>& second) {
  return join(first, " ") + " " + algo_text(context, "mark") + " " + join(second, " ");
}

AlgorithmItem series_item(const task::TaskContext& context, const std::vector<std::string>& input, std::string answer) {
  return {{{"input", join(input, " ")}, {"mark", algo_text(context, "mark")}}, std::move(answer)};
}

AlgorithmItem make_copy(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  const auto input = draw_symbols(context, n, rng);
  return series_item(context, input, join(input, " "));
}

AlgorithmItem make_copy_twice(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  const auto input = draw_symbols(context, n, rng);
  return series_item(context, input, with_mark(context, input, input));
}

std::vector<std::string> repeated(const std::string& one, std::int64_t n) {
  return std::vector<std::string>(static_cast<std::size_t>(n), one);
}

AlgorithmItem make_copy_one(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  const auto input = repeated(draw_symbols(context, 1, rng).front(), n);
  return series_item(context, input, join(input, " "));
}

AlgorithmItem make_copy_long(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  const std::string one = draw_symbols(context, 1, rng).front();
  return series_item(context, repeated(one, n), join(repeated(one, 2 * n), " "));
}

AlgorithmItem make_copy_swap(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  const auto two = rng.sample_without_replacement(kSymbols, 2);
  const std::string other = symbol(context, two[1]);
  AlgorithmItem item = series_item(context, repeated(symbol(context, two[0]), n), join(repeated(other, n), " "));
  item.slots.emplace_back("symbol", other);
  return item;
}

AlgorithmItem make_reverse(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  const auto input = draw_symbols(context, n, rng);
  return series_item(context, input, join(reversed(input), " "));
}

AlgorithmItem make_reverse_twice(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  const auto input = draw_symbols(context, n, rng);
  return series_item(context, input, with_mark(context, reversed(input), reversed(input)));
}

AlgorithmItem make_reverse_copy(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  const auto input = draw_symbols(context, n, rng);
  return series_item(context, input, with_mark(context, reversed(input), input));
}

std::string draw_digits(std::int64_t n, RngStream& rng) {
  std::string digits;
  for (std::int64_t i = 0; i < n; ++i) digits += static_cast<char>('0' + rng.uniform_int(i == 0 ? 1 : 0, 9));
  return digits;
}

std::string add_digits(const std::string& a, const std::string& b) {
  std::string sum;
  int carry = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()) || carry > 0; ++i) {
    if (i < a.size()) carry += a[a.size() - 1 - i] - '0';
    if (i < b.size()) carry += b[b.size() - 1 - i] - '0';
    sum += static_cast<char>('0' + carry % 10);
    carry /= 10;
  }
  std::reverse(sum.begin(), sum.end());
  return sum;
}

// One number has the size asked for, the other any up to it; either may come first.
AlgorithmItem make_add(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  std::string a = draw_digits(n, rng);
  std::string b = draw_digits(rng.uniform_int(1, n), rng);
  if (rng.uniform_index(2) == 1) std::swap(a, b);
  const std::string sum = add_digits(a, b);
  return {{{"a", digits_text(context, a)}, {"b", digits_text(context, b)}}, digits_text(context, sum)};
}

// Numbers where words have an order, else symbols in the order of their numbers.
AlgorithmItem make_sort(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  constexpr std::uint64_t kNumbers = 9990;
  constexpr std::uint64_t kLowest = 10;
  const bool closed = is_closed_pack(context);
  auto drawn = rng.sample_without_replacement(closed ? kSortSymbols : kNumbers, static_cast<std::uint64_t>(n));
  const auto write = [&](const std::vector<std::uint64_t>& items) {
    std::vector<std::string> out;
    out.reserve(items.size());
    for (const std::uint64_t i : items) out.push_back(closed ? symbol(context, i) : std::to_string(i + kLowest));
    return out;
  };
  const auto input = write(drawn);
  std::sort(drawn.begin(), drawn.end());
  return series_item(context, input, join(write(drawn), " "));
}

AlgorithmItem make_parity(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  std::vector<std::string> bits;
  std::int64_t ones = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bit = static_cast<std::int64_t>(rng.uniform_index(2));
    ones += bit;
    bits.push_back(std::to_string(bit));
  }
  return series_item(context, bits, algo_text(context, ones % 2 == 1 ? "word_odd" : "word_even"));
}

std::vector<std::string> draw_sum(std::int64_t n, std::int64_t& total, RngStream& rng) {
  std::vector<std::string> digits;
  total = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t digit = rng.uniform_int(1, 9);
    total += digit;
    digits.push_back(std::to_string(digit));
  }
  return digits;
}

AlgorithmItem make_sum(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  std::int64_t total = 0;
  const auto input = draw_sum(n, total, rng);
  return series_item(context, input, number_text(context, total));
}

AlgorithmItem make_summod(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  std::int64_t total = 0;
  const auto input = draw_sum(n, total, rng);
  return series_item(context, input, std::to_string(total % 10));
}

AlgorithmItem make_poly(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  const std::int64_t x = rng.uniform_int(-2, 2);
  std::vector<std::string> terms;
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t coefficient = rng.uniform_int(-3, 3);
    const std::int64_t degree = rng.uniform_int(0, 3);
    std::int64_t power = 1;
    for (std::int64_t d = 0; d < degree; ++d) power *= x;
    total += coefficient * power;
    terms.push_back(
        text::PromptPack::render(algo_text(context, "poly_term"),
                                 {{"coef", number_text(context, coefficient)}, {"degree", std::to_string(degree)}}));
  }
  AlgorithmItem item;
  item.slots = {{"x", number_text(context, x)}, {"input", join(terms, " + ")}};
  item.answer = std::to_string((total % 10 + 10) % 10);
  return item;
}

// Every variable is plus or minus the one before; a closed vocabulary says the sign alone.
AlgorithmItem make_chain(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  constexpr std::uint64_t kLetters = 26;
  const bool closed = is_closed_pack(context);
  std::vector<std::string> names;
  for (const std::uint64_t i : rng.sample_without_replacement(kLetters, static_cast<std::uint64_t>(n))) {
    names.push_back(closed ? symbol(context, i) : std::string(1, static_cast<char>('a' + i)));
  }
  const auto value_text = [closed](int value) -> std::string {
    if (closed) return value > 0 ? "+" : "-";
    return value > 0 ? "1" : "-1";
  };
  std::vector<int> values;
  std::vector<std::string> clauses;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int sign = rng.uniform_index(2) == 1 ? 1 : -1;
    values.push_back(i == 0 ? sign : values.back() * sign);
    const text::SlotValues slots = {{"var", names[i]},
                                    {"value", value_text(sign)},
                                    {"sign", sign > 0 ? "+" : "-"},
                                    {"from", i == 0 ? "" : names[i - 1]}};
    clauses.push_back(text::PromptPack::render(algo_text(context, i == 0 ? "chain_first" : "chain_next"), slots));
  }
  const auto asked = static_cast<std::size_t>(rng.uniform_int(n / 2, n - 1));
  return {{{"input", join(clauses, algo_text(context, "chain_sep"))}, {"query", names[asked]}},
          value_text(values[asked])};
}

/// Numbers of the words of an order: acts 0…3, sides 4 and 5, then these.
enum OrderWord : std::size_t { kCircle = 6, kDouble = 7, kTriple = 8, kThen = 9, kAfter = 10, kOrderWords = 11 };
constexpr std::size_t kActs = 4;

std::vector<std::size_t> draw_clause(RngStream& rng) {
  std::vector<std::size_t> clause = {rng.uniform_index(kActs)};
  if (rng.uniform_index(2) == 1) {
    clause.push_back(kActs + rng.uniform_index(2));
    if (rng.uniform_index(2) == 1) clause.push_back(kCircle);
  }
  const std::uint64_t times = rng.uniform_index(3);
  if (times > 0) clause.push_back(times == 1 ? kDouble : kTriple);
  return clause;
}

std::vector<std::size_t> draw_order(RngStream& rng) {
  std::vector<std::size_t> order = draw_clause(rng);
  const std::uint64_t joint = rng.uniform_index(3);
  if (joint == 0) return order;
  order.push_back(joint == 1 ? kThen : kAfter);
  const auto second = draw_clause(rng);
  order.insert(order.end(), second.begin(), second.end());
  return order;
}

using Steps = std::vector<std::size_t>;

Steps clause_steps(const std::vector<std::size_t>& clause) {
  Steps once;
  const bool side = clause.size() > 1 && clause[1] >= kActs && clause[1] < kCircle;
  if (side) once.push_back(clause[1]);
  once.push_back(clause.front());
  const auto has = [&clause](std::size_t word) {
    return std::find(clause.begin(), clause.end(), word) != clause.end();
  };
  const int times = (has(kCircle) ? 4 : 1) * (has(kDouble) ? 2 : has(kTriple) ? 3 : 1);
  Steps steps;
  for (int i = 0; i < times; ++i) steps.insert(steps.end(), once.begin(), once.end());
  return steps;
}

Steps order_steps(const std::vector<std::size_t>& order) {
  const auto joint =
      std::find_if(order.begin(), order.end(), [](std::size_t word) { return word == kThen || word == kAfter; });
  Steps first = clause_steps({order.begin(), joint});
  if (joint == order.end()) return first;
  Steps second = clause_steps({joint + 1, order.end()});
  if (*joint == kAfter) std::swap(first, second);
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<std::string> order_words(const task::TaskContext& context) {
  std::vector<std::string> words = split_list(algo_text(context, "cmd_words"));
  if (words.size() != kOrderWords) {
    throw ConfigError("pack '" + context.pack->name() + "': cmd_words needs 11 words: four acts, two sides, circle, " +
                      "double, triple, then, after");
  }
  return words;
}

std::string step_text(const task::TaskContext& context, const std::string& word) {
  if (is_closed_pack(context)) return word;
  std::string upper = word;
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

// Orders are drawn until one has as many steps as asked for.
AlgorithmItem make_cmd(const task::TaskContext& context, std::int64_t n, RngStream& rng) {
  const std::vector<std::string> words = order_words(context);
  std::vector<std::size_t> order = draw_order(rng);
  while (static_cast<std::int64_t>(order_steps(order).size()) != n) order = draw_order(rng);
  std::vector<std::string> said;
  said.reserve(order.size());
  for (const std::size_t word : order) said.push_back(words[word]);
  std::vector<std::string> steps;
  for (const std::size_t step : order_steps(order)) steps.push_back(step_text(context, words[step]));
  return {{{"input", join(said, " ")}}, join(steps, " ")};
}

std::vector<std::int64_t> order_sizes() {
  std::set<std::int64_t> sizes;
  const std::int64_t once[] = {1, 2, 8};
  std::set<std::int64_t> clauses;
  for (const std::int64_t steps : once) {
    for (const std::int64_t times : {1, 2, 3}) clauses.insert(steps * times);
  }
  for (const std::int64_t first : clauses) {
    sizes.insert(first);
    for (const std::int64_t second : clauses) sizes.insert(first + second);
  }
  return {sizes.begin(), sizes.upper_bound(kMostSteps)};
}

}  // namespace

const std::vector<AlgorithmKind>& algorithm_kinds() {
  static const std::vector<AlgorithmKind> kinds = {
      {"add", "add", "Two numbers; their sum.", 8, &make_add, true, 0},
      {"chain", "chain", "Variables that are plus or minus one another; the value of one.", 8, &make_chain, false, 2},
      {"cmd", "cmd", "An order in words; its single steps.", 24, &make_cmd, false, 0},
      {"copy", "copy", "A series of symbols; the same again.", 20, &make_copy, false, 0},
      {"copy_long", "copy_long", "One symbol repeated; twice as many.", 20, &make_copy_long, false, 0},
      {"copy_one", "copy", "One symbol repeated; the same again.", 20, &make_copy_one, false, 0},
      {"copy_swap", "copy_swap", "One symbol repeated; as many of another.", 20, &make_copy_swap, false, 0},
      {"copy_twice", "copy_twice", "A series of symbols; the same two times.", 20, &make_copy_twice, false, 0},
      {"parity", "parity", "Bits; is the number of ones odd or even?", 20, &make_parity, true, 2},
      {"poly", "poly", "A polynomial and a number; the value modulo 10.", 8, &make_poly, true, 10},
      {"reverse", "reverse", "A series of symbols; back to front.", 20, &make_reverse, false, 0},
      {"reverse_copy", "reverse_copy", "A series of symbols; back to front, then as given.", 20, &make_reverse_copy,
       false, 0},
      {"reverse_twice", "reverse_twice", "A series of symbols; back to front two times.", 20, &make_reverse_twice,
       false, 0},
      {"sort", "sort", "Numbers or symbols; in rising order.", 8, &make_sort, false, 0},
      {"sum", "sum", "Digits; their sum.", 20, &make_sum, true, 0},
      {"summod", "summod", "Digits; the last digit of their sum.", 20, &make_summod, true, 10},
  };
  return kinds;
}

std::vector<std::int64_t> algorithm_sizes(const AlgorithmKind& kind) {
  if (kind.make == &make_cmd) return order_sizes();
  std::vector<std::int64_t> sizes;
  for (std::int64_t n = kSmallestSize; n <= 2 * kind.trained_size; ++n) sizes.push_back(n);
  return sizes;
}

std::vector<std::string> run_order(const std::vector<std::string>& order, const std::vector<std::string>& words) {
  std::vector<std::size_t> numbers;
  for (const std::string& word : order) {
    const auto found = std::find(words.begin(), words.end(), word);
    FATHOM_CHECK(found != words.end(), "'" + word + "' is no word of an order");
    numbers.push_back(static_cast<std::size_t>(found - words.begin()));
  }
  std::vector<std::string> steps;
  for (const std::size_t step : order_steps(numbers)) steps.push_back(words[step]);
  return steps;
}

}  // namespace fathom::tasks
