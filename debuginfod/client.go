package debuginfod

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrNotFound is wrapped by errors if all servers say that they do not have a file. It is
// fs.ErrNotExist too.
var ErrNotFound error = notFound{}

type notFound struct{}

func (notFound) Error() string   { return "no server has it" }
func (notFound) Is(e error) bool { return e == fs.ErrNotExist }

// Client fetches files from servers. Several goroutines may use it at once. Its fields must not
// change meanwhile.
type Client struct {
	URLs []string // of servers, which are asked all at once
	Dir  string   // where files are kept: see cacheDir

	// Timeout is how long a server may take to answer, and then to send each 100 KiB. 0 means 90 s,
	// as elfutils has it. A file takes an hour at most, with all servers, or what DEBUGINFOD_MAXTIME says.
	Timeout time.Duration
	// MaxSize is how many bytes a file may have. 0 means 4 GiB.
	MaxSize int64
	// Header is sent with each request.
	Header http.Header
	// Progress, if not nil, is called during transfers, with bytes. total is 0 if the server does not say it.
	Progress func(done, total uint64)
	// Transport makes requests; nil means http.DefaultTransport.
	Transport http.RoundTripper

	maxTime time.Duration // that servers have for a file; 0 means defaultMaxTime
}

const (
	defaultTimeout = 90 * time.Second
	defaultMaxSize = 4 << 30
	// defaultMaxTime is enough for the largest kernel at 300 KB a second. Without a bound a server that keeps just above its
	// pace could take weeks.
	defaultMaxTime = time.Hour
)

// FromEnvironment returns a client as the environment describes it, or nil if DEBUGINFOD_URLS names no
// server. It reads DEBUGINFOD_URLS, DEBUGINFOD_CACHE_PATH, DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME,
// DEBUGINFOD_MAXSIZE and DEBUGINFOD_HEADERS_FILE. The error names the variable that is wrong.
func FromEnvironment() (*Client, error) {
	var urls []string
	for _, u := range strings.Fields(os.Getenv("DEBUGINFOD_URLS")) {
		if !strings.HasPrefix(u, "ima:") { // policies for signatures, of elfutils 0.192
			urls = append(urls, u)
		}
	}
	return fromEnvironment(urls, "DEBUGINFOD_HEADERS_FILE")
}

// PacksFromEnvironment is FromEnvironment for servers of packs, which Client.Pack asks: those with the given URLs and those that PACK_URLS
// names. They are sent the headers of PACK_HEADERS_FILE, and not those of DEBUGINFOD_HEADERS_FILE, which may be secrets of other servers;
// limits and the cache are the same. Any server of static files will do: the file is BASE/buildid/BUILDID/pack, as "pack write --out-dir"
// lays packs out.
func PacksFromEnvironment(urls ...string) (*Client, error) {
	return fromEnvironment(append(slices.Clip(urls), strings.Fields(os.Getenv("PACK_URLS"))...), "PACK_HEADERS_FILE")
}

// fromEnvironment returns a client for servers, or nil if there are none. headers is the variable that names a file with headers for them.
func fromEnvironment(urls []string, headers string) (*Client, error) {
	if len(urls) == 0 {
		return nil, nil
	}
	c := &Client{URLs: urls}
	var err error
	if c.Dir, err = cacheDir(); err != nil {
		return nil, err
	}
	for name, to := range map[string]*time.Duration{"DEBUGINFOD_TIMEOUT": &c.Timeout, "DEBUGINFOD_MAXTIME": &c.maxTime} {
		seconds, err := number(name)
		if err != nil {
			return nil, err
		}
		*to = time.Duration(min(seconds, 1<<30)) * time.Second
	}
	if c.MaxSize, err = number("DEBUGINFOD_MAXSIZE"); err != nil {
		return nil, err
	}
	if path := os.Getenv(headers); path != "" {
		if c.Header, err = readHeaders(path); err != nil {
			return nil, fmt.Errorf("%s: %w", headers, err)
		}
	}
	return c, nil
}

// number returns the number in a variable, or 0 if it is not set.
func number(name string) (int64, error) {
	text := os.Getenv(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %q is not a non-negative number", name, text)
	}
	return n, nil
}

// readHeaders reads header lines, one "Name: value" a line.
func readHeaders(path string) (http.Header, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	h := make(http.Header)
	for i, line := range bytes.Split(text, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		name, value, ok := strings.Cut(string(line), ":")
		if !ok || name == "" {
			return nil, fmt.Errorf("%s:%d: expected a line NAME: VALUE", path, i+1)
		}
		h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return h, nil
}

// DebugInfo returns the path of the file with a build's debug information, which it fetches unless the
// cache has it. The build ID is in hexadecimal. If no server has the file the error wraps ErrNotFound,
// and if ctx ends first, its cause.
func (c *Client) DebugInfo(ctx context.Context, buildID string) (path string, err error) {
	return c.find(ctx, buildID, debugInfo, debugInfo)
}

// Executable returns the path of a build's program, library or kernel image.
func (c *Client) Executable(ctx context.Context, buildID string) (path string, err error) {
	return c.find(ctx, buildID, executable, executable)
}

// Section returns the path of a file with the contents of one section of a build, such as .gdb_index:
// of the file with debug information if that has it, else of the executable. Servers have sections
// since elfutils 0.188; from others the error is ErrNotFound.
func (c *Client) Section(ctx context.Context, buildID, name string) (path string, err error) {
	if name == "" || strings.ContainsAny(name, "/\x00") || len(name) > 200 {
		return "", fmt.Errorf("section %q: a section's name is needed", name)
	}
	return c.find(ctx, buildID, "section/"+url.PathEscape(name), "section-"+name)
}

// Pack returns the path of a build's pack: see package pack, and PacksFromEnvironment. All of it is checked once it is there; what
// it says is its server's word.
func (c *Client) Pack(ctx context.Context, buildID string) (path string, err error) {
	return c.find(ctx, buildID, packed, packed)
}

// Finder returns DebugInfo as dwarfloc.Options.FindDebug wants it. A nil client finds nothing.
func (c *Client) Finder(ctx context.Context) func(buildID string) (path string, err error) {
	if c == nil {
		return nil
	}
	return func(buildID string) (string, error) { return c.DebugInfo(ctx, buildID) }
}

// maxBuildID is how long a build ID may be, in bytes: more than any hash.
const maxBuildID = 64

// checkBuildID returns an error for what is no build ID: it becomes a part of paths and URLs.
func checkBuildID(id string) error {
	if b, err := hex.DecodeString(id); err != nil || len(b) == 0 || len(b) > maxBuildID || strings.ToLower(id) != id {
		return fmt.Errorf("%q is not a build ID: that has from 1 to %d bytes in lower-case hexadecimal", id, maxBuildID)
	}
	return nil
}

// find returns the path of a file in the cache, where it is called name. what is the end of its URL.
func (c *Client) find(ctx context.Context, buildID, what, name string) (string, error) {
	if err := checkBuildID(buildID); err != nil {
		return "", err
	}
	e := entry{dir: c.Dir, buildID: buildID, name: name}
	path, err := e.lookUp()
	if path != "" || err != nil {
		return path, err
	}
	err = c.fetch(ctx, buildID+"/"+what, func(a *answer) (err error) {
		path, err = e.store(a)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		e.noteMissing()
	}
	if err != nil {
		return "", fmt.Errorf("build ID %s: %s: %w", buildID, name, err)
	}
	return path, nil
}
