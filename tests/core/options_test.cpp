#include "harness/core/options.h"

#include "harness/core/error.h"
#include "harness/core/registry.h"
#include "tests/support/catch.h"

using fathom::OptionSource;

namespace {

struct DemoOptions {
  std::int64_t value_digits = 7;
  double factor = 1.5;
  bool shuffle = false;
  std::string mode = "a";
  std::optional<std::int64_t> layers;
  std::vector<std::string> words = {"x"};
  void visit(fathom::OptionVisitor& v) {
    v.integer("value_digits", value_digits, {1, 18}, "Digits in the number to be found.");
    v.real("factor", factor, {1, 100}, "A factor.");
    v.flag("shuffle", shuffle, "Whether to shuffle.");
    v.choice("mode", mode, {"a", "b"}, "A mode.");
    v.optional_integer("layers", layers, {1, 8}, "Layers.");
    v.text_list("words", words, "Words.");
  }
};

std::string error_of(std::map<std::string, std::string> values) {
  DemoOptions options;
  try {
    fathom::bind_options(options, OptionSource("[task.demo]", std::move(values)));
  } catch (const fathom::ConfigError& error) {
    CHECK(error.exit_code() == fathom::ExitCode::kUsage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("options: one declaration parses, describes and dumps", "[core][options]") {
  DemoOptions options;
  fathom::bind_options(
      options,
      OptionSource("[task.demo]", {{"value_digits", "9"}, {"shuffle", "on"}, {"layers", "3"}, {"words", "p, q"}}));
  CHECK(options.value_digits == 9);
  CHECK(options.shuffle);
  CHECK(options.layers == 3);
  CHECK(fathom::canonical_options(options) == "value_digits=9;factor=1.5;shuffle=on;mode=a;layers=3;words=p, q");
  const auto described = fathom::describe_options(DemoOptions{});
  CHECK(described.size() == 6);
  CHECK(described[0].allowed == "1..18");
  CHECK(described[4].default_value == "auto");
}

TEST_CASE("options: bad values say where, what and what is allowed", "[core][options][errors]") {
  CHECK(error_of({{"value_digits", "25"}}) == "config: [task.demo] value_digits = 25 is outside 1..18");
  CHECK(error_of({{"value_digits", "7x"}}) == "config: [task.demo] value_digits = 7x is not an integer");
  CHECK(error_of({{"factor", "nan"}}) == "config: [task.demo] factor = nan is not a number");
  CHECK(error_of({{"shuffle", "yes"}}) == "config: [task.demo] shuffle = yes must be on or off");
  CHECK(error_of({{"mode", "c"}}) == "config: [task.demo] mode = c must be one of a, b");
  CHECK(error_of({{"words", ""}}) == "config: [task.demo] words =  is an empty list");
}

TEST_CASE("options: an unknown key names the nearest one, and all problems come at once", "[core][options][errors]") {
  CHECK(error_of({{"value_digit", "3"}}) ==
        "config: [task.demo] unknown key 'value_digit'; did you mean 'value_digits'?");
  const std::string both = error_of({{"value_digit", "3"}, {"factor", "0"}});
  CHECK(both.find("factor = 0 is outside 1..100") != std::string::npos);
  CHECK(both.find("did you mean 'value_digits'") != std::string::npos);
}

TEST_CASE("registry: an unknown name suggests the nearest and lists what exists", "[core][registry][errors]") {
  struct Entry {
    std::string_view name;
  };
  const fathom::Registry<Entry> registry("scaling", {{"linear"}, {"yarn"}});
  CHECK(registry.find("yarn") != nullptr);
  CHECK_THROWS_WITH(registry.at("yran"), "unknown scaling 'yran'; did you mean 'yarn'? known: linear, yarn");
}
