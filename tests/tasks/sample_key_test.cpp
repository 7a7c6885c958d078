#include "harness/task/sample_key.h"

#include <set>

#include "tests/support/catch.h"

namespace {

using namespace fathom;
using task::PairMode;
using task::SampleStream;

task::SampleKeyParts example_parts() {
  task::SampleKeyParts parts;
  parts.task = "niah_single_2@balanced";
  parts.version = 3;
  parts.parameters = {{"extra_keys", "0"}, {"digits", "-"}};
  parts.length_tokens = 4096;
  parts.depth_bp = 2500;
  parts.index = 7;
  parts.seed = 42;
  return parts;
}

}  // namespace

TEST_CASE("sample_key: the canonical text is spelled as specified", "[task][sample_key]") {
  task::SampleKeyParts parts = example_parts();
  CHECK(task::sample_key(parts) == "fathom/1|niah_single_2@balanced|v=3|digits=-;extra_keys=0|L=4096|d=2500|i=7|s=42");
  parts.parameters.clear();
  parts.depth_bp.reset();
  CHECK(task::sample_key(parts) == "fathom/1|niah_single_2@balanced|v=3|-|L=4096|d=-|i=7|s=42");
  parts.length_tokens.reset();
  CHECK(task::sample_key(parts) == "fathom/1|niah_single_2@balanced|v=3|-|L=-|d=-|i=7|s=42");
}

TEST_CASE("sample_key: streams leave out what neighbouring cells share", "[task][sample_key]") {
  task::SampleKeyParts parts = example_parts();
  const std::string head = "fathom/1|niah_single_2@balanced|v=3|digits=-;extra_keys=0|";
  CHECK(task::stream_key(parts, SampleStream::kFacts).text() == head + "L=-|d=-|i=7|s=42|facts");
  CHECK(task::stream_key(parts, SampleStream::kHay).text() == head + "L=-|d=-|i=7|s=42|hay");
  CHECK(task::stream_key(parts, SampleStream::kOrder).text() == head + "L=4096|d=2500|i=7|s=42|order");
  CHECK(task::stream_key(parts, SampleStream::kAux).text() == head + "L=4096|d=2500|i=7|s=42|aux");
  parts.pair = PairMode::kNone;
  CHECK(task::stream_key(parts, SampleStream::kFacts).text() == head + "L=4096|d=2500|i=7|s=42|facts");
  CHECK(task::stream_key(parts, SampleStream::kHay).text() == head + "L=-|d=-|i=7|s=42|hay");
  parts.pair = PairMode::kDepth;
  CHECK(task::stream_key(parts, SampleStream::kFacts).text() == head + "L=4096|d=-|i=7|s=42|facts");
  parts.pair = PairMode::kLength;
  CHECK(task::stream_key(parts, SampleStream::kPlace).text() == head + "L=-|d=2500|i=7|s=42|place");
}

TEST_CASE("sample_key: streams of one key differ", "[task][sample_key]") {
  std::set<std::uint64_t> first_draws;
  for (const SampleStream stream :
       {SampleStream::kFacts, SampleStream::kPlace, SampleStream::kOrder, SampleStream::kHay, SampleStream::kAux}) {
    first_draws.insert(task::sample_stream(example_parts(), stream).next_u64());
  }
  CHECK(first_draws.size() == 5);
}

TEST_CASE("sample_key: every part of an address changes it", "[task][sample_key]") {
  task::AddressParts base;
  base.pack = "p";
  base.words = "w";
  base.haystack = "h";
  base.tokenizer = "t";
  base.assembler = "a";
  base.generation_budget = 128;
  std::set<std::string> addresses = {task::sample_address("key", base), task::sample_address("other key", base)};
  for (std::string task::AddressParts::*member :
       {&task::AddressParts::pack, &task::AddressParts::words, &task::AddressParts::haystack,
        &task::AddressParts::tokenizer, &task::AddressParts::assembler}) {
    task::AddressParts changed = base;
    changed.*member = "x";
    addresses.insert(task::sample_address("key", changed));
  }
  task::AddressParts changed = base;
  changed.generation_budget = 129;
  addresses.insert(task::sample_address("key", changed));
  changed = base;
  changed.think_budget = 1;
  addresses.insert(task::sample_address("key", changed));
  changed = base;
  changed.pair = PairMode::kNone;
  addresses.insert(task::sample_address("key", changed));
  CHECK(addresses.size() == 10);
  for (const std::string& address : addresses) CHECK(address.size() == 32);
}

TEST_CASE("sample_key: canonical options become sorted parameters without words for numbers", "[task][sample_key]") {
  const auto parameters = task::parse_parameters("hops=4;chains=1;digits=auto;flag=on;other=off");
  const std::map<std::string, std::string> expected = {
      {"chains", "1"}, {"digits", "-"}, {"flag", "1"}, {"hops", "4"}, {"other", "0"}};
  CHECK(parameters == expected);
  CHECK(task::parse_parameters("").empty());
}
