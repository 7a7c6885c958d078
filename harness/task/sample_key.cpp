#include "harness/task/sample_key.h"

#include <string_view>

#include "harness/core/hash.h"
#include "harness/core/text_util.h"

namespace fathom::task {
namespace {

std::string_view stream_name(SampleStream stream) {
  switch (stream) {
    case SampleStream::kFacts:
      return "facts";
    case SampleStream::kPlace:
      return "place";
    case SampleStream::kOrder:
      return "order";
    case SampleStream::kHay:
      return "hay";
    case SampleStream::kAux:
      return "aux";
  }
  FATHOM_CHECK(false, "unknown sample stream");
}

std::string_view pair_name(PairMode pair) {
  switch (pair) {
    case PairMode::kNone:
      return "none";
    case PairMode::kDepth:
      return "depth";
    case PairMode::kLength:
      return "length";
    case PairMode::kBoth:
      return "both";
  }
  FATHOM_CHECK(false, "unknown pair mode");
}

std::string key_text(const SampleKeyParts& parts, bool with_length, bool with_depth) {
  std::string parameters;
  for (const auto& [name, value] : parts.parameters) {
    if (!parameters.empty()) parameters += ';';
    parameters.append(name).append(1, '=').append(value);
  }
  std::string key = "fathom/1|" + parts.task + "|v=" + std::to_string(parts.version) + '|';
  key += parameters.empty() ? "-" : parameters;
  key += "|L=" + (with_length && parts.length_tokens ? std::to_string(*parts.length_tokens) : "-");
  key += "|d=" + (with_depth && parts.depth_bp ? std::to_string(*parts.depth_bp) : "-");
  key += "|i=" + std::to_string(parts.index) + "|s=" + std::to_string(parts.seed);
  return key;
}

}  // namespace

std::string sample_key(const SampleKeyParts& parts) {
  std::string key = key_text(parts, true, true);
  if (parts.control != Control::kNone) key.append("|c=").append(to_string(parts.control));
  return key;
}

RngKey stream_key(const SampleKeyParts& parts, SampleStream stream) {
  bool with_length = true;
  bool with_depth = true;
  if (stream == SampleStream::kHay) {
    with_length = false;
    with_depth = false;
  } else if (stream == SampleStream::kFacts || stream == SampleStream::kPlace) {
    with_depth = parts.pair == PairMode::kNone || parts.pair == PairMode::kLength;
    with_length = parts.pair == PairMode::kNone || parts.pair == PairMode::kDepth;
  }
  return RngKey(key_text(parts, with_length, with_depth)).child(stream_name(stream));
}

RngStream sample_stream(const SampleKeyParts& parts, SampleStream stream) {
  return RngStream(stream_key(parts, stream));
}

std::string sample_address(const std::string& key, const AddressParts& parts) {
  std::string text = key;
  text += "\npack=" + parts.pack;
  text += "\nwords=" + parts.words;
  text += "\nhaystack=" + parts.haystack;
  text += "\ntokenizer=" + parts.tokenizer;
  text += "\nprompt=" + parts.assembler;
  text += "\npair=";
  text += pair_name(parts.pair);
  text += "\nG=" + std::to_string(parts.generation_budget);
  text += "\nT=" + std::to_string(parts.think_budget);
  return hash_hex(text);
}

std::map<std::string, std::string> parse_parameters(const std::string& canonical_options) {
  std::map<std::string, std::string> parameters;
  if (canonical_options.empty()) return parameters;
  for (const std::string& pair : split(canonical_options, ';')) {
    const std::size_t equals = pair.find('=');
    FATHOM_CHECK(equals != std::string::npos, "canonical options are name=value pairs");
    std::string value = pair.substr(equals + 1);
    if (value.empty() || value == "auto") value = "-";
    if (value == "on") value = "1";
    if (value == "off") value = "0";
    parameters[pair.substr(0, equals)] = value;
  }
  return parameters;
}

}  // namespace fathom::task
