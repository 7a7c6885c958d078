// The only translation unit that sees Boost.Program_options.
#include "harness/config/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/config/frame_keys.h"
#include "harness/config/ini_lines.h"
#include "harness/config/validate.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::config {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// A value and where it was given: "quickstart.ini:12" or "--set".
struct GivenValue {
  std::string text;
  std::string origin;
};
using GivenValues = std::map<std::string, GivenValue>;  ///< by full key

/// One source of values for a section. Later layers overrule earlier ones.
struct ValueLayer {
  const GivenValues* values;
  std::string prefix;  ///< "model.smol."
};

/// Reads every option from its layers in turn, so that each complaint carries its own file and line.
class LayeredReader : public OptionVisitor {
 public:
  LayeredReader(std::string section, std::vector<ValueLayer> layers, std::vector<std::string>& problems)
      : section_(std::move(section)), layers_(std::move(layers)), problems_(problems) {}

  void integer(std::string_view name, std::int64_t& value, IntegerRange range, std::string_view help) override {
    read(name, [&](OptionVisitor& reader, std::string_view key) { reader.integer(key, value, range, help); });
  }
  void real(std::string_view name, double& value, RealRange range, std::string_view help) override {
    read(name, [&](OptionVisitor& reader, std::string_view key) { reader.real(key, value, range, help); });
  }
  void text(std::string_view name, std::string& value, std::string_view help) override {
    read(name, [&](OptionVisitor& reader, std::string_view key) { reader.text(key, value, help); });
  }
  void flag(std::string_view name, bool& value, std::string_view help) override {
    read(name, [&](OptionVisitor& reader, std::string_view key) { reader.flag(key, value, help); });
  }
  void choice(std::string_view name, std::string& value, const std::vector<std::string>& allowed,
              std::string_view help) override {
    read(name, [&](OptionVisitor& reader, std::string_view key) { reader.choice(key, value, allowed, help); });
  }
  void optional_integer(std::string_view name, std::optional<std::int64_t>& value, IntegerRange range,
                        std::string_view help) override {
    read(name, [&](OptionVisitor& reader, std::string_view key) { reader.optional_integer(key, value, range, help); });
  }
  void optional_real(std::string_view name, std::optional<double>& value, RealRange range,
                     std::string_view help) override {
    read(name, [&](OptionVisitor& reader, std::string_view key) { reader.optional_real(key, value, range, help); });
  }
  void text_list(std::string_view name, std::vector<std::string>& value, std::string_view help) override {
    read(name, [&](OptionVisitor& reader, std::string_view key) { reader.text_list(key, value, help); });
  }

 private:
  template <typename ReadOne>
  void read(std::string_view name, const ReadOne& read_one) {
    for (const ValueLayer& layer : layers_) {
      const auto found = layer.values->find(layer.prefix + std::string(name));
      if (found == layer.values->end()) continue;
      const std::string section = section_.empty() ? "" : fmt::format(" [{}]", section_);
      const std::string where = fmt::format("{}:{}", found->second.origin, section);
      if (found->second.text.empty()) {
        add(fmt::format("{} {} has no value", where, name));
        continue;
      }
      const OptionSource source(where, {{std::string(name), found->second.text}});
      OptionReader reader(source);
      read_one(reader, name);
      for (const std::string& problem : reader.problems()) add(problem);
    }
  }

  void add(const std::string& problem) {
    // A default of [model] is read once for each [model.NAME]; its mistake is one mistake.
    if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end()) problems_.push_back(problem);
  }

  std::string section_;
  std::vector<ValueLayer> layers_;
  std::vector<std::string>& problems_;
};

std::string config_error_text(const std::vector<std::string>& problems) {
  return "config: " + join(problems, "\nconfig: ");
}

/// The same number has one spelling, so that the fingerprint does not depend on how it was written.
void normalise_numbers(std::vector<std::string>& values) {
  for (std::string& value : values) {
    if (const auto number = parse_double(value)) value = format_double(*number);
  }
}

/// Puts file and command line together into a RunConfig and collects every problem on the way.
class ConfigBuilder {
 public:
  ConfigBuilder(std::string_view ini_text, const std::string& file_name) : file_name_(file_name) {
    if (starts_with(ini_text, kByteOrderMark)) ini_text.remove_prefix(kByteOrderMark.size());
    lines_ = scan_ini(ini_text);
    for (const auto& [line, problem] : lines_.problems) {
      problems_.push_back(fmt::format("{}:{}: {}", file_name_, line, problem));
    }
    if (!problems_.empty()) throw ConfigError(config_error_text(problems_));
    read_sections();
    read_values(ini_text);
  }

  void apply(const std::vector<Setting>& settings);
  RunConfig build();

 private:
  void read_sections();
  void read_values(std::string_view ini_text);
  void check_keys(const GivenValues& values);
  void collect_plugins(const GivenValues& values, ModelSection& model, const std::string& prefix);
  void collect_task_options(const GivenValues& values);
  ModelSection build_model(const std::string& name);
  void check_position(ModelSection& model, const std::string& prefix);
  void add_cross_field_problems();
  std::string origin_of(const std::string& key) const;
  template <typename Section>
  void bind(Section& section, const std::string& name);

  std::string file_name_;
  IniLines lines_;
  FrameKeys keys_{{}};
  std::vector<std::string> unknown_sections_;
  GivenValues file_values_;
  GivenValues settings_;
  RunConfig config_;
  std::map<std::string, std::map<std::string, std::string>> task_values_;
  std::vector<std::string> problems_;
};

void ConfigBuilder::read_sections() {
  std::vector<std::string> model_names;
  for (const IniSection& section : lines_.sections) {
    if (const auto problem = FrameKeys::section_problem(section.name)) {
      problems_.push_back(fmt::format("{}:{}: {}", file_name_, section.line, *problem));
      unknown_sections_.push_back(section.name + ".");
    } else if (starts_with(section.name, "model.")) {
      const std::string name = section.name.substr(std::string_view("model.").size());
      if (std::find(model_names.begin(), model_names.end(), name) == model_names.end()) model_names.push_back(name);
    }
  }
  keys_ = FrameKeys(std::move(model_names));
}

void ConfigBuilder::read_values(std::string_view ini_text) {
  namespace po = boost::program_options;
  po::options_description description;
  for (const std::string& key : keys_.declared()) description.add_options()(key.c_str(), po::value<std::string>());
  std::istringstream in{std::string(ini_text)};
  try {
    // Unregistered keys are let through only to be collected for plug-ins; check_keys() refuses all others.
    const po::parsed_options parsed = po::parse_config_file(in, description, true);
    for (const po::option& option : parsed.options) {
      const auto line = lines_.first_line.find(option.string_key);
      const std::string origin =
          line == lines_.first_line.end() ? file_name_ : fmt::format("{}:{}", file_name_, line->second);
      file_values_[option.string_key] = {option.value.empty() ? "" : option.value.front(), origin};
    }
  } catch (const po::error& error) {
    throw ConfigError(fmt::format("config: {}: {}", file_name_, error.what()));
  }
}

void ConfigBuilder::apply(const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    const std::string key = FrameKeys::full_key(setting.key);
    if (!settings_.emplace(key, GivenValue{setting.value, "--set"}).second) {
      problems_.push_back(fmt::format("--set: key '{}' is given twice; keep one (a list is one value: a, b)", key));
    }
  }
}

void ConfigBuilder::check_keys(const GivenValues& values) {
  for (const auto& [key, given] : values) {
    const KeyKind kind = keys_.kind(key);
    if (kind == KeyKind::kUnknown || kind == KeyKind::kUnknownModel) {
      const bool reported = std::any_of(unknown_sections_.begin(), unknown_sections_.end(),
                                        [&, k = key](const std::string& section) { return starts_with(k, section); });
      if (!reported) problems_.push_back(fmt::format("{}: unknown key '{}'{}", given.origin, key, keys_.hint(key)));
    } else if (kind != KeyKind::kFrame && given.text.empty()) {
      problems_.push_back(fmt::format("{}: {} has no value", given.origin, key));
    }
  }
}

void ConfigBuilder::collect_plugins(const GivenValues& values, ModelSection& model, const std::string& prefix) {
  for (const auto& [key, given] : values) {
    if (!starts_with(key, prefix) || keys_.kind(key) != KeyKind::kModelPlugin) continue;
    const std::string rest = key.substr(prefix.size());
    // Under the plain prefix "model." also stand the keys of named models: those are not defaults.
    const std::string head = rest.substr(0, rest.find('.'));
    const std::vector<std::string>& names = keys_.model_names();
    const bool of_named = prefix == "model." && std::find(names.begin(), names.end(), head) != names.end();
    if (!of_named) model.plugin_options[rest] = given.text;
  }
}

void ConfigBuilder::collect_task_options(const GivenValues& values) {
  for (const auto& [key, given] : values) {
    if (keys_.kind(key) != KeyKind::kTaskOption) continue;
    const std::string rest = key.substr(std::string_view("task.").size());
    const auto dot = rest.find('.');
    task_values_[rest.substr(0, dot)][rest.substr(dot + 1)] = given.text;
  }
}

template <typename Section>
void ConfigBuilder::bind(Section& section, const std::string& name) {
  const std::string prefix = name.empty() ? "" : name + ".";
  LayeredReader reader(name, {{&file_values_, prefix}, {&settings_, prefix}}, problems_);
  section.visit(reader);
}

ModelSection ConfigBuilder::build_model(const std::string& name) {
  ModelSection model;
  model.name = name;
  const std::string own = "model." + name + ".";
  // One layer after the other rather than all at once: [model] is named in complaints about its defaults.
  std::vector<std::pair<std::string, ValueLayer>> layers = {{"model", {&file_values_, "model."}}};
  if (!name.empty()) layers.push_back({"model." + name, {&file_values_, own}});
  layers.push_back({"model", {&settings_, "model."}});
  if (!name.empty()) layers.push_back({"model." + name, {&settings_, own}});
  for (const auto& [section, layer] : layers) {
    LayeredReader reader(section, {layer}, problems_);
    model.visit(reader);
    collect_plugins(*layer.values, model, layer.prefix);
  }
  check_position(model, layers.back().second.prefix);
  normalise_numbers(model.rope_base);
  normalise_numbers(model.rope_partial);
  normalise_numbers(model.scaling_factor);
  return model;
}

void ConfigBuilder::check_position(ModelSection& model, const std::string& prefix) {
  if (model.source == "train") return;
  // A default of [model] may serve its trained models only; what this model itself says must mean something.
  static const std::pair<const char*, const char*> kTrainingKeys[] = {{"position", "rope"},
                                                                      {"rope.layout", "split_half"},
                                                                      {"rope.partial", "1"},
                                                                      {"rope.side", "prefix"},
                                                                      {"nope_layers", "none"}};
  for (const auto& [key, usual] : kTrainingKeys) {
    for (const GivenValues* values : {&file_values_, &settings_}) {
      const auto given = values->find(prefix + key);
      if (given == values->end() || given->second.text == usual) continue;
      problems_.push_back(fmt::format(
          "{}: {} = {} has no effect on source = {}; a checkpoint brings its own positions, and only source "
          "= train takes others",
          given->second.origin, given->first, given->second.text, model.source));
    }
  }
  model.rope_layout = ModelSection().rope_layout;
  model.rope_partial = ModelSection().rope_partial;
  model.rope_side = ModelSection().rope_side;
  model.nope_layers = ModelSection().nope_layers;
  model.position = ModelSection().position;
}

std::string ConfigBuilder::origin_of(const std::string& key) const {
  std::vector<std::string> spellings = {key};
  for (const std::string& name : keys_.model_names()) {
    const std::string prefix = "model." + name + ".";
    if (starts_with(key, prefix)) spellings.push_back("model." + key.substr(prefix.size()));
  }
  for (const GivenValues* values : {&settings_, &file_values_}) {
    for (const std::string& spelling : spellings) {
      const auto found = values->find(spelling);
      if (found != values->end()) return found->second.origin;
    }
  }
  return file_name_;
}

void ConfigBuilder::add_cross_field_problems() {
  for (const ConfigProblem& problem : find_problems(config_)) {
    problems_.push_back(fmt::format("{}: {}", origin_of(problem.key), problem.text));
  }
}

RunConfig ConfigBuilder::build() {
  check_keys(file_values_);
  check_keys(settings_);
  bind(config_, "");
  if (config_.name.empty()) {
    const std::string base = file_name_.substr(file_name_.find_last_of('/') + 1);
    config_.name = base.substr(0, base.find_last_of('.'));
  }
  for (const std::string& name : keys_.model_names()) config_.models.push_back(build_model(name));
  if (config_.models.empty()) config_.models.push_back(build_model(""));
  bind(config_.train, "train");
  bind(config_.sweep, "sweep");
  bind(config_.prompt, "prompt");
  bind(config_.haystack, "haystack");
  bind(config_.engine, "engine");
  bind(config_.report, "report");
  collect_task_options(file_values_);
  collect_task_options(settings_);
  for (auto& [task, values] : task_values_) {
    config_.task_options.emplace(task, OptionSource(fmt::format("{}: [task.{}]", file_name_, task), std::move(values)));
  }
  add_cross_field_problems();
  if (!problems_.empty()) throw ConfigError(config_error_text(problems_));
  return std::move(config_);
}

}  // namespace

Setting parse_setting(std::string_view text) {
  const auto equals = text.find('=');
  const std::string key(trim(text.substr(0, equals)));
  if (equals == std::string_view::npos || key.empty()) {
    throw ConfigError(fmt::format("config: --set '{}' is not key=value; write for example --set scaling=yarn", text));
  }
  const std::string value(trim(text.substr(equals + 1)));
  if (value.empty()) throw ConfigError(fmt::format("config: --set '{}' gives no value after '='", text));
  // The canonical text of a run is an INI file again, and there a value ends at '#' and at the end of the line.
  if (text.find_first_of("#\n\r") != std::string_view::npos) {
    throw ConfigError(fmt::format("config: --set '{}' holds '#' or a line break, which no value can", text));
  }
  return {key, value};
}

RunConfig parse_config(std::string_view ini_text, const std::string& file_name, const std::vector<Setting>& settings) {
  ConfigBuilder builder(ini_text, file_name);
  builder.apply(settings);
  return builder.build();
}

RunConfig load_config(const std::string& path, const std::vector<Setting>& settings) {
  if (std::filesystem::is_directory(path)) {
    throw ConfigError(fmt::format("config: '{}' is a folder; name the .ini file in it", path));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ConfigError(fmt::format("config: cannot open '{}'; check the path and the permissions", path));
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) throw ConfigError(fmt::format("config: cannot read '{}'", path));
  return parse_config(text.str(), path, settings);
}

}  // namespace fathom::config
