// Package otlp hands hits to what collects telemetry, by the OpenTelemetry protocol: whole runs are spans, other hits are log records.
//
// It writes the protocol's form in JSON, by the names of opentelemetry-proto 1.x, so that importers get no runtime for Protocol Buffers.
package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/recording"
)

// A batch is sent when it has so many hits, or when its first one is so old.
const (
	batchHits = 512
	batchTime = time.Second
)

// Export sends hits, as they come, until there are no more. to is the address of an HTTP endpoint, such as http://localhost:4318, to which
// "/v1/traces" and "/v1/logs" are added, or the path of a file, which gets a line for each request. service is the service.name of all of
// them; "" is the name of each task. A run is the child of the run that it is in, if both are of one thread and in one batch: one second.
//
// Hits are of this machine, since it started: their times are since then, and a span has those of the day.
func Export(ctx context.Context, to, service string, hits iter.Seq[*recording.Hit]) (err error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil { // what bpf_ktime_get_ns returns
		return err
	}
	e := &exporter{ctx: ctx, to: to, service: service, boot: time.Now().Add(-time.Duration(now.Nano()))}
	defer func() { err = errors.Join(err, e.close()) }()
	// Hits come one by one, and a batch is also sent while none comes.
	done := make(chan struct{})
	defer close(done)
	coming := make(chan *recording.Hit)
	go func() {
		defer close(coming)
		for h := range hits {
			select {
			case coming <- h:
			case <-done:
				return
			}
		}
	}()
	var batch []*recording.Hit
	var old <-chan time.Time
	for {
		select {
		case h, more := <-coming:
			if !more {
				return e.send(batch)
			}
			if len(batch) == 0 {
				old = time.After(batchTime)
			}
			if batch = append(batch, h); len(batch) < batchHits {
				continue
			}
		case <-old:
		}
		if err := e.send(batch); err != nil {
			return err
		}
		batch, old = batch[:0], nil
	}
}

// exporter sends batches.
type exporter struct {
	ctx     context.Context
	to      string
	service string
	boot    time.Time // when the machine started
	file    *os.File  // opened for the first batch
}

// send sends a batch: runs and other hits in a request each.
func (e *exporter) send(batch []*recording.Hit) error {
	var runs, others []*recording.Hit
	for _, h := range batch {
		if h.End != nil {
			runs = append(runs, h)
		} else {
			others = append(others, h)
		}
	}
	for _, r := range []struct {
		path string
		hits []*recording.Hit
		body func([]*recording.Hit) any
	}{{"/v1/traces", runs, e.traces}, {"/v1/logs", others, e.logs}} {
		if len(r.hits) == 0 {
			continue
		}
		var b bytes.Buffer
		err := jsonline.Write(&b, r.body(r.hits))
		if err != nil {
			return err
		}
		body := b.Bytes()
		if strings.HasPrefix(e.to, "http://") || strings.HasPrefix(e.to, "https://") {
			err = e.post(r.path, body)
		} else {
			err = e.write(body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write adds a line to the file.
func (e *exporter) write(body []byte) (err error) {
	if e.file == nil {
		if e.file, err = os.Create(e.to); err != nil {
			return err
		}
	}
	_, err = e.file.Write(body)
	return err
}

func (e *exporter) close() error {
	if e.file == nil {
		return nil
	}
	return e.file.Close()
}

// How often a request is made that the endpoint could not take now, how long one may take, and how long it is waited before another try.
const (
	tries   = 4
	timeout = 10 * time.Second
	pause   = 200 * time.Millisecond
)

// post makes a request. The protocol says which answers mean that it can be made again.
func (e *exporter) post(path string, body []byte) (err error) {
	to, err := url.Parse(e.to)
	if err != nil { // which has the address, and its password
		return errors.New("the address of the endpoint is no URL; in a name and a password of it, what is no letter or digit is written as %40 is for @")
	}
	if !strings.HasSuffix(to.Path, path) {
		to = to.JoinPath(path)
	}
	for i := range tries {
		if i > 0 {
			select {
			case <-time.After(pause << i):
			case <-e.ctx.Done():
				return errors.Join(err, context.Cause(e.ctx))
			}
		}
		var again bool
		if again, err = e.postOnce(to, body); !again {
			return err
		}
	}
	return err
}

func (e *exporter) postOnce(to *url.URL, body []byte) (again bool, err error) {
	// Without what lets one in: errors go to logs.
	shown := (&url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}).String()
	// What was traced until the end is still sent.
	ctx, stop := context.WithTimeout(context.WithoutCancel(e.ctx), timeout)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err
		}
		return true, fmt.Errorf("%s: %w", shown, err)
	}
	defer answer.Body.Close()
	const most = 1 << 12
	text, _ := io.ReadAll(io.LimitReader(answer.Body, most)) // it is for the message alone
	switch answer.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
		fallthrough
	default:
		return again, fmt.Errorf("%s: %s: %s", shown, answer.Status, terminal.Text(strings.TrimSpace(string(text))))
	}
	var partial struct {
		PartialSuccess struct{ ErrorMessage string }
	}
	if json.Unmarshal(text, &partial) == nil && partial.PartialSuccess.ErrorMessage != "" {
		return false, fmt.Errorf("%s: not all was taken: %s", shown, terminal.Text(partial.PartialSuccess.ErrorMessage))
	}
	return false, nil
}
