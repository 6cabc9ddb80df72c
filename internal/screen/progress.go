package screen

import (
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// patience is how long work may take before a bar is drawn: a scan of a kernel in the page
// cache is done before anyone could read the bar.
const patience = 400 * time.Millisecond

// Counting returns a function that draws how many things are done, on a terminal: to attach a
// kernel's sites takes some milliseconds for each.
func Counting(what string) func(done, total int) {
	if !OnTerminal() {
		return nil
	}
	show := Progress(what, progressbar.OptionShowCount())
	return func(done, total int) { show(uint64(done), uint64(total)) }
}

// Progress returns a function that draws a progress bar, unless the work is done soon.
func Progress(what string, o ...progressbar.Option) func(done, total uint64) {
	var (
		mu    sync.Mutex
		bar   *progressbar.ProgressBar
		start time.Time
	)
	return func(done, total uint64) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case start.IsZero():
			start = time.Now()
		case done >= total:
			if bar != nil {
				_ = bar.Clear() // failing to draw is no reason to stop
			}
			bar, start = nil, time.Time{}
		case bar != nil:
			_ = bar.Set64(int64(done))
		case time.Since(start) > patience:
			bar = progressbar.NewOptions64(int64(total), append(o, progressbar.OptionSetDescription(what),
				progressbar.OptionSetWriter(drawn),
				progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())...)
		}
	}
}
