// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// Measures of the chart, in pixels.
const (
	chartLabel  = 380 // left of the bars
	chartBars   = 420 // a ratio of chartMost is this long
	chartAfter  = 70  // right of the bars
	chartLine   = 22  // from one row to the next
	chartTop    = 56
	chartBottom = 14
	// chartMost is the largest ratio drawn; a longer bar is cut there.
	chartMost = 1.5
)

// chartStyle follows the reader's light or dark theme.
const chartStyle = `<style>
text { font: 12px system-ui, sans-serif; fill: #24292f }
.hit { fill: #1a7f5a } .miss { fill: #c2571a } .none { fill: #6e7781 }
.one { stroke: #6e7781; stroke-dasharray: 3 3 } .target { stroke: #24292f; stroke-width: 2 }
.small { fill: #6e7781; font-size: 11px }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9198a1 } .target { stroke: #e6edf3 }
.hit { fill: #2ea97d } .miss { fill: #e0763a }
}
</style>
`

// chart draws the ratio of each result as a bar, its target as a tick, and
// controller-runtime as the line at 1. What was not measured is left out.
func chart(results []result) string {
	results = slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.Missing != "" })
	height := chartTop + chartLine*len(results) + chartBottom
	width := chartLabel + chartBars + chartAfter
	x := func(ratio float64) float64 { return chartLabel + min(ratio, chartMost)/chartMost*chartBars }
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %[1]d %[2]d\" role=\"img\">\n", width, height)
	b.WriteString("<title>Wherry's cost, as a share of controller-runtime v0.25.1's</title>\n" + chartStyle)
	fmt.Fprintf(&b, "<text x=\"8\" y=\"20\" font-weight=\"600\">Cost as a share of controller-runtime v0.25.1's: shorter is better</text>\n")
	b.WriteString("<text class=\"small\" x=\"8\" y=\"38\">green: target reached; orange: missed; grey: no target. The tick is the target, the dashed line controller-runtime.</text>\n")
	fmt.Fprintf(&b, "<line class=\"one\" x1=\"%.1f\" x2=\"%.1[1]f\" y1=\"%d\" y2=\"%d\"/>\n", x(1), chartTop-6, height-chartBottom)
	for i, r := range results {
		y := chartTop + chartLine*i
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s <tspan class=\"small\">%s</tspan></text>\n", chartLabel-8, y+12, html.EscapeString(r.Name), html.EscapeString(string(r.Unit)))
		fmt.Fprintf(&b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"14\" rx=\"2\"/>\n", r.class(), chartLabel, y+1, max(x(r.Ratio)-chartLabel, 1))
		if r.Target > 0 {
			fmt.Fprintf(&b, "<line class=\"target\" x1=\"%.1f\" x2=\"%.1[1]f\" y1=\"%d\" y2=\"%d\"/>\n", x(r.Target), y-1, y+17)
		}
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\">%.2f</text>\n", x(r.Ratio)+6, y+12, r.Ratio)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// class is the colour of a result's bar.
func (r result) class() string {
	if v := r.verdict(); v != "" {
		return v
	}
	return "none"
}
