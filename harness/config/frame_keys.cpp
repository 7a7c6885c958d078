#include "harness/config/frame_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/config/parse.h"
#include "harness/core/text_util.h"

namespace fathom::config {
namespace {

constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

std::string_view key_head(std::string_view key) {
  return key.substr(0, key.find('.'));
}

/// What follows the first dot; empty without one.
std::string_view key_rest(std::string_view key) {
  const auto dot = key.find('.');
  return dot == std::string_view::npos ? std::string_view() : key.substr(dot + 1);
}

std::string key_last(const std::string& key) {
  return key.substr(key.find_last_of('.') + 1);
}

std::vector<std::string> frame_sections() {
  std::vector<std::string> names;
  for (const DescribedSection& section : describe_config()) {
    if (!section.section.empty()) names.push_back(section.section);
  }
  return names;
}

bool is_model_key_head(std::string_view word) {
  const std::vector<OptionDescription> options = describe_options(ModelSection());
  return std::any_of(options.begin(), options.end(), [&](const auto& option) { return key_head(option.name) == word; });
}

std::optional<std::string> model_name_problem(std::string_view name) {
  if (name.find_first_not_of(kNameCharacters) != std::string_view::npos) {
    return fmt::format("section [model.{}]: a model's name takes letters, digits, '_' and '-' only", name);
  }
  if (is_model_key_head(name)) {
    return fmt::format(
        "section [model.{0}]: '{0}' is the first word of a model's key, so no model can be called so; rename it, for "
        "example [model.{0}_1]",
        name);
  }
  return std::nullopt;
}

}  // namespace

FrameKeys::FrameKeys(std::vector<std::string> model_names) : model_names_(std::move(model_names)) {
  for (const DescribedSection& section : describe_config()) {
    for (const OptionDescription& option : section.options) {
      declared_.insert(section.section.empty() ? option.name : section.section + "." + option.name);
      if (section.section != "model") continue;
      model_keys_.insert(option.name);
      for (const std::string& name : model_names_) declared_.insert(fmt::format("model.{}.{}", name, option.name));
    }
  }
}

KeyKind FrameKeys::kind(const std::string& key) const {
  if (declared_.count(key) != 0) return KeyKind::kFrame;
  const std::string_view head = key_head(key);
  const std::string_view rest = key_rest(key);
  if (head == "task" && !key_head(rest).empty() && !key_rest(rest).empty()) return KeyKind::kTaskOption;
  if (head == "model") return model_kind(rest);
  return KeyKind::kUnknown;
}

KeyKind FrameKeys::model_kind(std::string_view rest) const {
  const bool named = std::find(model_names_.begin(), model_names_.end(), key_head(rest)) != model_names_.end();
  const std::string_view key = named ? key_rest(rest) : rest;
  if (key_rest(key).empty() || key_head(key).empty()) return KeyKind::kUnknown;
  if (!named && model_keys_.count(std::string(key_rest(key))) != 0) return KeyKind::kUnknownModel;
  // One letter away from a key of the frame is a slip, not the option of a plug-in.
  for (const std::string& known : model_keys_) {
    if (edit_distance(known, key) <= 1) return KeyKind::kUnknown;
  }
  const std::string_view head = key_head(key);
  const bool open = head == "rope" || head == "scaling" || head == "remap" || !is_model_key_head(head);
  return open ? KeyKind::kModelPlugin : KeyKind::kUnknown;
}

std::string FrameKeys::hint(const std::string& key) const {
  if (kind(key) == KeyKind::kUnknownModel) {
    const std::string name(key_head(key_rest(key)));
    if (model_names_.empty()) return fmt::format("; there is no section [model.{}]", name);
    const auto near_model = nearest_name(name, model_names_);
    return fmt::format("; there is no section [model.{}]{}; models: {}", name,
                       near_model ? fmt::format(", did you mean '{}'?", *near_model) : std::string(),
                       join(model_names_, ", "));
  }
  // The right key in the wrong section is nearer than any misspelling.
  const std::string_view last = key_rest(key).empty() ? std::string_view(key) : key_rest(key);
  for (const std::string& known : declared_) {
    if (known == last) return fmt::format("; '{}' stands outside sections, before the first one", known);
    if (key_rest(known) == last || key_rest(known) == key) return fmt::format("; did you mean '{}'?", known);
  }
  const auto near_key = nearest_name(key, {declared_.begin(), declared_.end()});
  if (near_key) return fmt::format("; did you mean '{}'?", *near_key);
  for (const std::string& known : declared_) {
    if (ends_with(known, "." + key_last(key))) return fmt::format("; did you mean '{}'?", known);
  }
  return "; 'fathom list options' shows every key";
}

std::optional<std::string> FrameKeys::section_problem(const std::string& section) {
  const std::vector<std::string> known = frame_sections();
  if (std::find(known.begin(), known.end(), section) != known.end()) return std::nullopt;
  const std::string_view rest = key_rest(section);
  if (key_head(section) == "model") return model_name_problem(rest);
  if (key_head(section) == "task") {
    if (rest.empty()) return "section [task] lacks the task's name; write for example [task.niah_single_2]";
    if (rest.find_first_not_of(kNameCharacters) == std::string_view::npos) return std::nullopt;
    return fmt::format("section [{}]: a task's options are those of both variants; write its bare name", section);
  }
  std::vector<std::string> candidates = known;
  candidates.emplace_back("task.NAME");
  const auto near_section = nearest_name(section, known);
  return fmt::format("unknown section [{}]{}; sections: {}", section,
                     near_section ? fmt::format("; did you mean [{}]?", *near_section) : std::string(),
                     join(candidates, ", "));
}

std::string FrameKeys::full_key(const std::string& key) {
  const std::string head(key_head(key));
  const std::vector<std::string> sections = frame_sections();
  const bool in_section = head == "task" || std::find(sections.begin(), sections.end(), head) != sections.end();
  if (in_section && head != key) return key;
  const std::vector<OptionDescription> top = describe_config().front().options;
  const bool is_top = std::any_of(top.begin(), top.end(), [&](const auto& option) { return option.name == key; });
  return is_top ? key : "model." + key;
}

}  // namespace fathom::config
