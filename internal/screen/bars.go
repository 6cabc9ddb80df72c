package screen

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// barWidth is how long the longest bar of a histogram is.
const barWidth = 40

// PrintBars prints a line with a bar for each count, which are whole numbers.
func PrintBars(w io.Writer, indent string, texts []string, counts []float64) {
	most, wide, digits := 1.0, 0, 0
	numbers := make([]string, len(counts))
	for i, n := range counts {
		numbers[i] = strconv.FormatFloat(n, 'f', -1, 64)
		most, wide, digits = max(most, n), max(wide, utf8.RuneCountInString(texts[i])), max(digits, len(numbers[i]))
	}
	for i, n := range counts {
		bar := strings.Repeat("#", int(math.Ceil(max(n, 0)*barWidth/most)))
		terminal.Fprintf(w, "%s\n", strings.TrimRight(fmt.Sprintf("%s  %*s  %*s  %s", indent, wide, texts[i], digits, numbers[i], bar), " "))
	}
}
