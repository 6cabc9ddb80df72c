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

	"github.com/bpfprologue/bpfprologue/internal/terminal"
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

// errLate is the cause of the end of transfers that take too long in all.
var errLate = errors.New("the servers take too long in all: DEBUGINFOD_MAXTIME is how many seconds they have")

// fetch asks all servers for a file, and calls keep with the answers of those that have it, one after another, until one is
// good. What another server has is not read meanwhile, but it need not be asked again.
func (c *Client) fetch(ctx context.Context, what string, keep func(*answer) error) error {
	type reply struct {
		a   *answer
		err error
	}
	if len(c.URLs) == 0 {
		return errors.New("no server is known")
	}
	most := c.maxTime
	if most == 0 {
		most = defaultMaxTime
	}
	end := time.Now().Add(most)
	ctx, late := context.WithDeadlineCause(ctx, end, errLate)
	defer late()
	replies := make(chan reply)
	for _, base := range c.URLs {
		go func() {
			a, err := c.askOne(ctx, base, what)
			select {
			case replies <- reply{a, err}:
			case <-ctx.Done(): // another server's was good
				if a != nil {
					a.close()
				}
			}
		}()
	}
	var failed []error
	for left := len(c.URLs); left > 0; left-- {
		var r reply
		select {
		case r = <-replies:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if r.err == nil {
			// Each has its share of the time, or one that sends little would leave none to those after it.
			share := time.AfterFunc(time.Until(end)/time.Duration(left), func() { r.a.cancel(errLate) })
			r.err = keep(r.a)
			share.Stop()
			r.a.close()
		}
		switch {
		case r.err == nil:
			return nil
		case !errors.Is(r.err, ErrNotFound):
			failed = append(failed, r.err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(failed) == 0 {
		return ErrNotFound
	}
	err := failed[0]
	for _, e := range failed[1:] {
		err = fmt.Errorf("%w; %w", err, e)
	}
	return err
}

// askOne asks one server.
func (c *Client) askOne(all context.Context, base, what string) (_ *answer, err error) {
	ctx, cancel := context.WithCancelCause(all) // of this transfer
	defer func() {
		if err != nil {
			cancel(nil)
		}
	}()
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
	resp, err := (&http.Client{Transport: c.Transport, CheckRedirect: c.redirected}).Do(req)
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

// maxRedirects is how often an answer may lead elsewhere.
const maxRedirects = 10

// redirected decides whether a server's answer may lead elsewhere: not from an encrypted connection to an open one. Another server does not
// get the headers, which may have the secrets of this one.
func (c *Client) redirected(req *http.Request, via []*http.Request) error {
	switch first := via[0].URL; {
	case len(via) >= maxRedirects:
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	case first.Scheme == "https" && req.URL.Scheme != "https":
		return fmt.Errorf("it leads from https to %s", terminal.Text(req.URL.String()))
	case first.Host != req.URL.Host:
		for name := range c.Header {
			req.Header.Del(name)
		}
	}
	return nil
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
