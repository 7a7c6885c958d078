#include "reports/svg.h"

#include <fmt/format.h>

#include "reports/format.h"

namespace fathom::reports {

std::string svg_number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

SvgWriter::SvgWriter(double width, double height, std::string_view title) {
  const std::string w = svg_number(width);
  const std::string h = svg_number(height);
  const std::string alternative =
      title.empty() ? R"(aria-hidden="true")" : fmt::format(R"(role="img" aria-label="{}")", escape_html(title));
  out_ = fmt::format(
      R"(<svg class="chart" {} width="{}" height="{}" viewBox="0 0 {} {}" xmlns="http://www.w3.org/2000/svg">)",
      alternative, w, h, w, h);
}

void SvgWriter::element(std::string_view name, const SvgAttributes& geometry, const SvgAttributes& attributes) {
  out_ += fmt::format("<{}", name);
  for (const auto* list : {&geometry, &attributes}) {
    for (const auto& [key, value] : *list) out_ += fmt::format(" {}=\"{}\"", key, escape_html(value));
  }
}

void SvgWriter::rectangle(double x, double y, double width, double height, const SvgAttributes& attributes) {
  element("rect",
          {{"x", svg_number(x)}, {"y", svg_number(y)}, {"width", svg_number(width)}, {"height", svg_number(height)}},
          attributes);
  out_ += "/>";
}

void SvgWriter::line(double x1, double y1, double x2, double y2, const SvgAttributes& attributes) {
  element("line", {{"x1", svg_number(x1)}, {"y1", svg_number(y1)}, {"x2", svg_number(x2)}, {"y2", svg_number(y2)}},
          attributes);
  out_ += "/>";
}

void SvgWriter::circle(double x, double y, double radius, const SvgAttributes& attributes) {
  element("circle", {{"cx", svg_number(x)}, {"cy", svg_number(y)}, {"r", svg_number(radius)}}, attributes);
  out_ += "/>";
}

void SvgWriter::path(const std::string& data, const SvgAttributes& attributes) {
  element("path", {{"d", data}}, attributes);
  out_ += "/>";
}

void SvgWriter::text(double x, double y, std::string_view content, const SvgAttributes& attributes) {
  element("text", {{"x", svg_number(x)}, {"y", svg_number(y)}}, attributes);
  out_ += ">" + escape_html(content) + "</text>";
}

void SvgWriter::open_group(const SvgAttributes& attributes) {
  element("g", {}, attributes);
  out_ += ">";
}

void SvgWriter::close_group() {
  out_ += "</g>";
}

std::string SvgWriter::finish() {
  return std::move(out_) + "</svg>";
}

}  // namespace fathom::reports
