#pragma once
// A small deterministic SVG writer: elements in the order they are called, numbers with at most two decimals,
// everything escaped.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fathom::reports {

/// Text of a coordinate: at most two decimals, no trailing zeros, no "-0".
std::string svg_number(double value);

/// Attributes as name and value; values are escaped.
using SvgAttributes = std::vector<std::pair<std::string_view, std::string>>;

class SvgWriter {
 public:
  /// \param title  text alternative (role="img" with aria-label); empty = decoration that screen readers skip.
  SvgWriter(double width, double height, std::string_view title);

  void rectangle(double x, double y, double width, double height, const SvgAttributes& attributes);
  void line(double x1, double y1, double x2, double y2, const SvgAttributes& attributes);
  void circle(double x, double y, double radius, const SvgAttributes& attributes);
  /// \param data  path commands, made with svg_number.
  void path(const std::string& data, const SvgAttributes& attributes);
  void text(double x, double y, std::string_view content, const SvgAttributes& attributes);
  void open_group(const SvgAttributes& attributes);
  void close_group();

  /// The whole element; the writer is used up.
  std::string finish();

 private:
  void element(std::string_view name, const SvgAttributes& geometry, const SvgAttributes& attributes);

  std::string out_;
};

}  // namespace fathom::reports
