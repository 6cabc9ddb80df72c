package otlp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/otlp"
	"github.com/bpfprologue/bpfprologue/recording"
)

// hits are of two processes: runs in each other, on two threads, and hits that are no runs.
func hits() []*recording.Hit {
	plan := &recording.Plan{Definition: "walk i"}
	end := &recording.Site{Plan: plan, Text: "walk%exit", Args: []recording.Arg{{Name: "$retval"}}}
	run := func(pid, tid int, name string, from, to time.Duration) *recording.Hit {
		s := &recording.Site{Plan: plan, Text: name, Qualified: name, Addr: 0x1000, Args: []recording.Arg{{Name: "i"}, {Name: "name", Doubt: "reassigned"}, {Name: "lost", Doubt: "reassigned"}, {Name: "f"}}}
		return &recording.Hit{
			Time: from, PID: pid, TID: tid, Comm: "server", Site: s, End: end, Duration: to - from,
			Values:  []recording.Value{{Text: "2", Any: int64(2)}, {Text: `"a\x1b"`, Any: "a\x1b"}, {Text: "?", Lost: true}, {Text: "1.5", Any: 1.5}},
			Results: []recording.Value{{Text: "18446744073709551615", Any: uint64(1<<64 - 1)}},
		}
	}
	hit := &recording.Hit{Time: 7, PID: 9, TID: 9, Comm: "other", Site: &recording.Site{Plan: plan, Text: "walk in main", Qualified: "walk", Args: []recording.Arg{{Name: "ok"}}}, Values: []recording.Value{{Text: "true", Any: true}}}
	return []*recording.Hit{
		run(1, 1, "inner", 20, 30), run(1, 2, "other", 5, 100), run(1, 1, "outer", 10, 40), hit, run(1, 1, "next", 41, 45), run(3, 3, "inner", 20, 30),
	}
}

// span is what the test looks at.
type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	StartTimeUnixNano, EndTimeUnixNano  string
	Attributes                          []attribute
}

type attribute struct {
	Key   string
	Value map[string]any
}

type request struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []attribute }
		ScopeSpans []struct{ Spans []span }
	}
	ResourceLogs []struct {
		Resource  struct{ Attributes []attribute }
		ScopeLogs []struct {
			LogRecords []struct {
				TimeUnixNano string
				Body         map[string]any
				Attributes   []attribute
			}
		}
	}
}

// check checks what hits became.
func check(t *testing.T, all []request) {
	t.Helper()
	spans := make(map[string]span)
	records := 0
	for _, r := range all {
		for _, x := range r.ResourceSpans {
			for _, s := range x.ScopeSpans[0].Spans {
				spans[s.Name+" of "+x.Resource.Attributes[1].Value["intValue"].(string)] = s
			}
		}
		for _, x := range r.ResourceLogs {
			for _, l := range x.ScopeLogs[0].LogRecords {
				records++
				if l.Body["stringValue"] != "walk in main ok=true" || x.Resource.Attributes[0].Value["stringValue"] != "other" || l.Attributes[4].Key != "arg.ok" || l.Attributes[4].Value["boolValue"] != true {
					t.Errorf("record %+v", l)
				}
			}
		}
	}
	if len(spans) != 5 || records != 1 {
		t.Fatalf("%d spans, %d records: %+v", len(spans), records, all)
	}
	inner, outer := spans["inner of 1"], spans["outer of 1"]
	if inner.ParentSpanID != outer.SpanID || inner.TraceID != outer.TraceID || len(inner.TraceID) != 32 || len(inner.SpanID) != 16 || inner.Kind != 1 {
		t.Errorf("inner %+v, outer %+v", inner, outer)
	}
	for _, name := range []string{"outer of 1", "other of 1", "next of 1", "inner of 3"} {
		if s := spans[name]; s.ParentSpanID != "" || name != "outer of 1" && s.TraceID == outer.TraceID {
			t.Errorf("%s: %+v", name, s)
		}
	}
	start, err := strconv.ParseInt(inner.StartTimeUnixNano, 10, 64)
	stop, stopErr := strconv.ParseInt(inner.EndTimeUnixNano, 10, 64)
	if err != nil || stopErr != nil || stop-start != 10 || time.Since(time.Unix(0, start)) < 0 {
		t.Errorf("from %s to %s", inner.StartTimeUnixNano, inner.EndTimeUnixNano)
	}
	var keys []string
	for _, a := range inner.Attributes {
		keys = append(keys, a.Key)
	}
	if want := []string{"thread.id", "thread.name", "code.function.name", "code.address", "arg.i", "arg.name", "arg.name.doubt", "arg.f", "result.$retval"}; !slices.Equal(keys, want) {
		t.Errorf("attributes %v", keys)
	}
	for i, want := range map[int]any{4: "2", 5: "a\x1b", 6: "reassigned", 7: 1.5, 8: "18446744073709551615"} {
		for _, got := range inner.Attributes[i].Value {
			if got != want {
				t.Errorf("%s is %v, want %v", inner.Attributes[i].Key, got, want)
			}
		}
	}
}

// TestFile: a file has a line for each request, in which nothing moves a terminal.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	if err := otlp.Export(t.Context(), path, "", slices.Values(hits())); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []request
	for line := range strings.Lines(string(text)) {
		var r request
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if check(t, all); strings.ContainsRune(string(text), 0x1b) {
		t.Errorf("%q", text)
	}
}

// TestEndpoint: requests are made again if the endpoint says so, and its other errors are the error.
func TestEndpoint(t *testing.T) {
	var all []request
	paths := make(map[string]int)
	answers := []int{http.StatusServiceUnavailable}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths[r.URL.Path+" "+r.Header.Get("Content-Type")]++
		if len(answers) > 0 {
			w.WriteHeader(answers[0])
			answers = answers[1:]
			_, _ = io.WriteString(w, "busy")
			return
		}
		var x request
		if err := json.NewDecoder(r.Body).Decode(&x); err != nil {
			t.Error(err)
		}
		all = append(all, x)
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	if err := otlp.Export(t.Context(), server.URL+"/", "shop", slices.Values(hits()[:3])); err != nil {
		t.Fatal(err)
	}
	if n := paths["/v1/traces application/json"]; n != 2 || len(paths) != 1 || len(all) != 1 || all[0].ResourceSpans[0].Resource.Attributes[0].Value["stringValue"] != "shop" {
		t.Errorf("requests %v: %+v", paths, all)
	}
	answers = []int{http.StatusBadRequest}
	if err := otlp.Export(t.Context(), server.URL, "", slices.Values(hits())); err == nil || !strings.Contains(err.Error(), "/v1/traces: 400 Bad Request: busy") {
		t.Error(err)
	}
	all, answers = nil, nil
	if err := otlp.Export(t.Context(), server.URL, "", slices.Values(hits())); err != nil {
		t.Error(err)
	}
	check(t, all)
}

// TestSecrets: the endpoint gets what lets one in, and errors do not have it.
func TestSecrets(t *testing.T) {
	answer := http.StatusBadRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "n4me" || password != "passw0rd" || r.URL.RequestURI() != "/in/v1/traces?key=t0ken" {
			t.Errorf("%s: %q, %q", r.URL, user, password)
		}
		w.WriteHeader(answer)
		_, _ = io.WriteString(w, `{"partialSuccess": {"errorMessage": "too old"}}`)
	}))
	to := strings.Replace(server.URL, "://", "://n4me:passw0rd@", 1) + "/in?key=t0ken"
	export := func(to, want string) {
		t.Helper()
		err := otlp.Export(t.Context(), to, "", slices.Values(hits()))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the error is %v, not %s", err, want)
			return
		}
		for _, secret := range []string{"n4me", "passw0rd", "t0ken"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s is in: %v", secret, err)
			}
		}
	}
	export(to, server.URL+"/in/v1/traces: 400 Bad Request: ")
	answer = http.StatusOK
	export(to, server.URL+"/in/v1/traces: not all was taken: too old")
	server.Close()
	export(to, server.URL+"/in/v1/traces: dial tcp ")
	export("http://n4me:passw0rd/@127.0.0.1:9", "the address of the endpoint is no URL")
}

// TestSlow: a batch is sent while the next hit is waited for.
func TestSlow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	seen := false
	err := otlp.Export(t.Context(), path, "", func(yield func(*recording.Hit) bool) {
		if !yield(hits()[0]) {
			return
		}
		for range 100 {
			time.Sleep(50 * time.Millisecond)
			if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
				seen = true
				return
			}
		}
	})
	if err != nil || !seen {
		t.Error(seen, err)
	}
}
