package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/terminal"
)

// answer is a file that a server sends.
type answer struct {
	url      string
	body     io.ReadCloser
	size     int64 // bytes, or 0 if the server does not say
	most     int64 // bytes
	timeout  time.Duration
	progress func(done, total uint64)

	ctx    context.Context // of the transfer alone
	cancel context.CancelCauseFunc
}

func (a *answer) close() {
	a.cancel(nil)
	_ = a.body.Close()
}

// errSlow is the cause of the end of a transfer that takes too long.
var errSlow = errors.New("the server does not go on sending")

// ask asks all servers for a file, and returns the answer of the first that has it.
func (c *Client) ask(ctx context.Context, what string) (*answer, error) {
	type reply struct {
		a   *answer
		err error
	}
	if len(c.URLs) == 0 {
		return nil, errors.New("no server is known")
	}
	replies := make(chan reply)
	done := make(chan struct{})
	defer close(done)
	cancels := make([]context.CancelCauseFunc, len(c.URLs))
	for i, base := range c.URLs {
		one, cancel := context.WithCancelCause(ctx)
		cancels[i] = cancel
		go func() {
			a, err := c.askOne(one, cancel, base, what)
			select {
			case replies <- reply{a, err}:
			case <-done: // another server was first
				if a != nil {
					a.close()
				}
			}
		}()
	}
	var failed []error
	for range c.URLs {
		r := <-replies
		if r.err == nil {
			for i := range cancels {
				if c.URLs[i] != r.a.url {
					cancels[i](nil)
				}
			}
			return r.a, nil
		}
		if !errors.Is(r.err, ErrNotFound) {
			failed = append(failed, r.err)
		}
	}
	for _, cancel := range cancels {
		cancel(nil)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if len(failed) == 0 {
		return nil, ErrNotFound
	}
	err := failed[0]
	for _, e := range failed[1:] {
		err = fmt.Errorf("%w; %w", err, e)
	}
	return nil, err
}

// askOne asks one server. The context is the transfer's, which cancel ends.
func (c *Client) askOne(ctx context.Context, cancel context.CancelCauseFunc, base, what string) (*answer, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: a server's URL begins with http:// or https://", terminal.Text(base))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/buildid/"+what, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, c.Header)
	req.Header.Set("User-Agent", "bpfprologue")
	// What is compressed for the transfer is unpacked by Go, and then has no length.
	req.Header.Set("Accept-Encoding", "identity")
	if c.MaxSize > 0 {
		req.Header.Set("X-Debuginfod-Maxsize", strconv.FormatInt(c.MaxSize, 10))
	}
	a := &answer{url: base, most: c.MaxSize, timeout: c.Timeout, progress: c.Progress, ctx: ctx, cancel: cancel}
	if a.most == 0 {
		a.most = defaultMaxSize
	}
	if a.timeout == 0 {
		a.timeout = defaultTimeout
	}
	slow := time.AfterFunc(a.timeout, func() { cancel(errSlow) })
	resp, err := (&http.Client{Transport: c.Transport}).Do(req)
	slow.Stop()
	if err != nil {
		return nil, cause(ctx, err)
	}
	switch {
	case resp.StatusCode == http.StatusNotFound:
		err = ErrNotFound
	case resp.StatusCode != http.StatusOK:
		err = fmt.Errorf("%s: %s", terminal.Text(base), terminal.Text(resp.Status))
	case resp.ContentLength > a.most:
		err = a.tooLarge()
	}
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	a.body, a.size = resp.Body, max(resp.ContentLength, 0)
	return a, nil
}

// cause returns why a transfer has failed: if it was ended, by what.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil && ctx.Err() != nil {
		return c
	}
	return err
}

func (a *answer) tooLarge() error {
	return fmt.Errorf("%s: the file has more than %d bytes", terminal.Text(a.url), a.most)
}

// pace is how many bytes a server must send within the timeout.
const pace = 100 << 10

// copyTo writes the file. The error is about the server, or the writer's.
func (a *answer) copyTo(w io.Writer) error {
	slow := time.AfterFunc(a.timeout, func() { a.cancel(errSlow) })
	defer slow.Stop()
	done, paced := int64(0), int64(0)
	buf := make([]byte, 256<<10)
	for {
		n, err := a.body.Read(buf)
		if done += int64(n); done > a.most {
			return a.tooLarge()
		}
		if done-paced >= pace {
			paced = done
			slow.Reset(a.timeout)
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
		if a.progress != nil {
			a.progress(uint64(done), uint64(max(a.size, 0)))
		}
		switch {
		case errors.Is(err, io.EOF) && done == 0:
			// elfutils' client takes an empty file in the cache for one that no server has.
			return fmt.Errorf("%s: the file is empty", terminal.Text(a.url))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: after %d bytes: %w", terminal.Text(a.url), done, cause(a.ctx, err))
		}
	}
}
