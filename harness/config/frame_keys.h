#pragma once
// The keys that the frame itself declares, and what may stand beside them: names of models and keys of plug-ins.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::config {

/// What a full key ("model.smol.scaling") is.
enum class KeyKind {
  kFrame,         ///< declared in run_config.cpp
  kTaskOption,    ///< task.NAME.key
  kModelPlugin,   ///< model.SCHEME.key, model.remap.key, model.scaling.key, or the same after model.NAME
  kUnknownModel,  ///< model.X.key with a key of the frame, but no section [model.X]
  kUnknown
};

class FrameKeys {
 public:
  /// \param model_names  the NAMEs of the [model.NAME] sections.
  explicit FrameKeys(std::vector<std::string> model_names);

  KeyKind kind(const std::string& key) const;
  const std::set<std::string>& declared() const { return declared_; }
  const std::vector<std::string>& model_names() const { return model_names_; }

  /// "; did you mean 'sweep.samples'?" or what else helps; empty if nothing is near.
  std::string hint(const std::string& key) const;
  /// The section of a header is one that exists; otherwise what is wrong with it.
  static std::optional<std::string> section_problem(const std::string& section);
  /// "scaling" -> "model.scaling": on the command line a leading "model." may be left out.
  static std::string full_key(const std::string& key);

 private:
  KeyKind model_kind(std::string_view rest) const;

  std::set<std::string> declared_;
  std::set<std::string> model_keys_;  ///< of the section [model], without "model."
  std::vector<std::string> model_names_;
};

}  // namespace fathom::config
