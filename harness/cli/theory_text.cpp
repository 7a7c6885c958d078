#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/cli/theory_predictions.h"
#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

using nlohmann::ordered_json;

constexpr int kCurveBarColumns = 40;

std::string line(const char* label, const std::string& text) {
  return fmt::format("  {:<18} {}\n", label, text);
}

/// "0-2, 4-6"
std::string layer_ranges(const ordered_json& layers) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < layers.size();) {
    std::size_t end = begin + 1;
    while (end < layers.size() && layers[end].get<std::int64_t>() == layers[end - 1].get<std::int64_t>() + 1) ++end;
    const std::int64_t first = layers[begin];
    const std::int64_t last = layers[end - 1];
    parts.push_back(first == last ? std::to_string(first) : fmt::format("{}-{}", first, last));
    begin = end;
  }
  return join(parts, ", ");
}

std::string first_negative_text(const ordered_json& rotation, const char* key) {
  const ordered_json& value = rotation.at(key);
  if (!value.is_null()) return fmt::format("m = {}", value.get<std::int64_t>());
  return fmt::format("none below {}", rotation.at("searched_to").get<std::int64_t>());
}

std::string number_or(const ordered_json& value, const char* otherwise) {
  return value.is_null() ? otherwise : fmt::format("{:.0f}", value.get<double>());
}

std::string curve_text(const ordered_json& curve) {
  std::string text = "  expected score by distance, B(m) / B(0)\n";
  for (const ordered_json& point : curve) {
    const double value = point.at("expected_score");
    const auto columns = static_cast<std::size_t>(std::lround(std::abs(value) * kCurveBarColumns));
    text += fmt::format("  {:>10}  {:>8.4f}  {}\n", point.at("distance").get<std::int64_t>(), value,
                        std::string(columns, value < 0 ? '-' : '#'));
  }
  return text;
}

std::string rotation_text(const ordered_json& rotation, std::int64_t trained, std::int64_t tested) {
  const auto integer = [&rotation](const char* key) { return rotation.at(key).get<std::int64_t>(); };
  const std::int64_t channels = integer("channels");
  if (channels == 0) return line("rotation", "every frequency is 0: nothing turns");
  std::string text =
      line("periods", fmt::format("{:.4g} … {:.4g} tokens, {} channels turn, {} stand still",
                                  rotation.at("shortest_period").get<double>(),
                                  rotation.at("longest_period").get<double>(), channels, integer("still_channels")));
  text += line("wrapped", fmt::format("{} of {} at {} -> {} at {}, {} newly wrapped", integer("wrapped_trained"),
                                      channels, trained, integer("wrapped_tested"), tested, integer("newly_wrapped")));
  text += line("unseen angles", fmt::format("in {} channels", integer("unseen_channels")));
  text += line("d_extra", fmt::format("{} of {} dimensions completed a period within {}", integer("critical_dimension"),
                                      integer("rotary_dim"), trained));
  text += line("T_extra", number_or(rotation.at("extrapolation_limit"), "no single base, so no limit"));
  text += line("critical base",
               fmt::format("{} for tuning at {}", number_or(rotation.at("critical_base"), "none"), tested));
  std::string negative = first_negative_text(rotation, "first_negative_advantage");
  if (integer("still_channels") > 0) {
    negative += ", whole head: " + first_negative_text(rotation, "first_negative_advantage_whole_head");
  }
  text += line("first B(m) < 0", negative);
  text += line("number formats",
               fmt::format("{} positions are {} in bf16, {} in fp16; {} frequencies subnormal in fp16; float32 angles "
                           "wrong by {:.2g}",
                           tested, integer("distinct_positions_bf16"), integer("distinct_positions_fp16"),
                           integer("subnormal_frequencies_fp16"), rotation.at("float32_cosine_error").get<double>()));
  if (rotation.contains("curve")) text += curve_text(rotation.at("curve"));
  return text;
}

std::string alibi_text(const ordered_json& alibi, std::int64_t tested) {
  const auto number = [&alibi](const char* key) { return alibi.at(key).get<double>(); };
  return line("slopes", fmt::format("{:.6g} … {:.6g}", number("steepest_slope"), number("flattest_slope"))) +
         line("ALiBi horizon",
              fmt::format("{:.0f} … {:.0f} tokens to a penalty of ln(1/{})", number("shortest_horizon"),
                          number("horizon"), format_double(number("epsilon")))) +
         line("penalty",
              fmt::format("{:.1f} nats for the flattest head at the far end of {}", number("penalty_at_end"), tested));
}

std::string group_heading(const ordered_json& group) {
  std::string text =
      fmt::format("layers {}: {}, {} heads x {}", layer_ranges(group.at("layers")),
                  group.at("position").get<std::string>(), group.at("n_heads").dump(), group.at("d_head").dump());
  if (!group.at("window").is_null()) text += fmt::format(", window {}", group.at("window").dump());
  if (group.contains("rotation")) {
    const ordered_json& rotation = group.at("rotation");
    const std::string method = rotation.at("scaling");
    text +=
        fmt::format(", {} lanes, base {:.10g}", rotation.at("rotary_dim").dump(), rotation.at("base").get<double>());
    if (method != "none") text += fmt::format(", {} s = {:.10g}", method, rotation.at("factor").get<double>());
  }
  return text + "\n";
}

}  // namespace

std::string theory_text(const std::string& json) {
  const ordered_json theory = ordered_json::parse(json);
  const std::int64_t trained = theory.at("trained_context");
  const std::int64_t tested = theory.at("tested_length");
  std::string text = fmt::format("{}: declared {} | trained {} | tested {}\n", theory.at("name").get<std::string>(),
                                 theory.at("claimed_context").dump(), trained, tested);
  for (const ordered_json& group : theory.at("groups")) {
    const auto seen = [&group](std::int64_t length) {
      return group.at("window").is_null() ? length : std::min(length, group.at("window").get<std::int64_t>());
    };
    text += group_heading(group);
    if (group.contains("rotation")) text += rotation_text(group.at("rotation"), seen(trained), seen(tested));
    if (group.contains("alibi")) text += alibi_text(group.at("alibi"), tested);
    if (group.contains("resolution_end")) {
      text += line("resolution", fmt::format("none from distance {} on", group.at("resolution_end").dump()));
    }
    if (group.at("position") == "nope") text += line("no positions", "order is seen through the causal mask only");
  }
  for (const ordered_json& warning : theory.at("warnings")) text += "warning: " + warning.get<std::string>() + "\n";
  return text;
}

}  // namespace fathom::cli
