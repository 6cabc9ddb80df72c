package otlp

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/bpfprologue/bpfprologue/recording"
)

// The form of requests in JSON: opentelemetry/proto/trace/v1/trace.proto, logs/v1/logs.proto and common/v1/common.proto, with names in lower
// camel case, numbers of 64 bits as strings, and IDs in hexadecimal (OTLP Specification, "JSON Protobuf Encoding").

type traces struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resource     `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type scopeSpans struct {
	Scope scope  `json:"scope"`
	Spans []span `json:"spans"`
}

type span struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	Parent     string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes"`
}

type logs struct {
	ResourceLogs []resourceLogs `json:"resourceLogs"`
}

type resourceLogs struct {
	Resource  resource    `json:"resource"`
	ScopeLogs []scopeLogs `json:"scopeLogs"`
}

type scopeLogs struct {
	Scope   scope       `json:"scope"`
	Records []logRecord `json:"logRecords"`
}

type logRecord struct {
	Time       string      `json:"timeUnixNano"`
	Severity   int         `json:"severityNumber"`
	Body       value       `json:"body"`
	Attributes []attribute `json:"attributes"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}

type scope struct {
	Name string `json:"name"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

// value is one of these.
type value struct {
	String *string  `json:"stringValue,omitempty"`
	Bool   *bool    `json:"boolValue,omitempty"`
	Int    *string  `json:"intValue,omitempty"`
	Double *float64 `json:"doubleValue,omitempty"`
}

const (
	kindInternal = 1 // SPAN_KIND_INTERNAL
	severityInfo = 9 // SEVERITY_NUMBER_INFO
)

var ownScope = scope{"bpfprologue"}

func text(s string) value { return value{String: &s} }

func number(n int64) value {
	s := strconv.FormatInt(n, 10)
	return value{Int: &s}
}

// valueOf returns a value of an argument; ok is false for one that was not fetched.
func valueOf(v *recording.Value) (out value, ok bool) {
	switch x := v.Any.(type) {
	case nil:
		if v.Lost {
			return out, false
		}
	case bool:
		return value{Bool: &x}, true
	case int64:
		return number(x), true
	case uint64:
		if x <= math.MaxInt64 {
			return number(int64(x)), true
		}
	case float64:
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			return value{Double: &x}, true
		}
	case string:
		return text(x), true
	}
	return text(v.Text), true
}

// attributes are those of a hit: its thread, its function, its values, and why a value may not be what was passed.
func attributes(h *recording.Hit) []attribute {
	out := []attribute{
		{"thread.id", number(int64(h.TID))}, {"thread.name", text(h.Comm)},
		{"code.function.name", text(h.Site.Qualified)}, {"code.address", text(fmt.Sprintf("%#x", h.Site.Addr))},
	}
	add := func(prefix string, s *recording.Site, values []recording.Value) {
		for i := range values {
			v, ok := valueOf(&values[i])
			if !ok {
				continue
			}
			a := &s.Args[i]
			if out = append(out, attribute{prefix + a.Name, v}); a.Doubt != "" {
				out = append(out, attribute{prefix + a.Name + ".doubt", text(a.Doubt)})
			}
		}
	}
	add("arg.", h.Site, h.Values)
	if h.End != nil {
		add("result.", h.End, h.Results)
	}
	if h.Outcome != "" {
		out = append(out, attribute{"run.outcome", text(h.Outcome)})
	}
	return out
}

// process is what a resource is.
type process struct {
	pid  int
	comm string
}

// byProcess groups hits by their process.
func byProcess(hits []*recording.Hit) (keys []process, groups map[process][]*recording.Hit) {
	groups = make(map[process][]*recording.Hit)
	for _, h := range hits {
		p := process{h.PID, h.Comm}
		if groups[p] == nil {
			keys = append(keys, p)
		}
		groups[p] = append(groups[p], h)
	}
	return keys, groups
}

func (e *exporter) resource(p process) resource {
	return resource{[]attribute{{"service.name", text(cmp.Or(e.service, p.comm))}, {"process.pid", number(int64(p.pid))}}}
}

func (e *exporter) at(d time.Duration) string {
	return strconv.FormatInt(e.boot.Add(d).UnixNano(), 10)
}

// traces returns the request for runs.
func (e *exporter) traces(runs []*recording.Hit) any {
	var out traces
	keys, groups := byProcess(runs)
	for _, p := range keys {
		spans := make([]span, len(groups[p]))
		// The outermost first: the open runs of a thread are a stack.
		list := slices.Clone(groups[p])
		slices.SortStableFunc(list, func(a, b *recording.Hit) int {
			return cmp.Or(cmp.Compare(a.TID, b.TID), cmp.Compare(a.Time, b.Time), cmp.Compare(b.Duration, a.Duration))
		})
		var open []int
		for i, h := range list {
			for len(open) > 0 && (list[open[len(open)-1]].TID != h.TID || ends(list[open[len(open)-1]]) < ends(h)) {
				open = open[:len(open)-1]
			}
			s := span{
				TraceID: fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()|1), SpanID: fmt.Sprintf("%016x", rand.Uint64()|1), // 0 is none
				Name: h.Site.Qualified, Kind: kindInternal, Start: e.at(h.Time), End: e.at(ends(h)), Attributes: attributes(h),
			}
			if len(open) > 0 {
				in := &spans[open[len(open)-1]]
				s.TraceID, s.Parent = in.TraceID, in.SpanID
			}
			spans[i], open = s, append(open, i)
		}
		out.ResourceSpans = append(out.ResourceSpans, resourceSpans{e.resource(p), []scopeSpans{{ownScope, spans}}})
	}
	return &out
}

func ends(h *recording.Hit) time.Duration { return h.Time + h.Duration }

// logs returns the request for hits.
func (e *exporter) logs(hits []*recording.Hit) any {
	var out logs
	keys, groups := byProcess(hits)
	for _, p := range keys {
		var records []logRecord
		for _, h := range groups[p] {
			body := h.Site.Text
			for i := range h.Values {
				body += " " + h.Site.Args[i].Name + "=" + h.Values[i].Text
			}
			records = append(records, logRecord{e.at(h.Time), severityInfo, text(body), attributes(h)})
		}
		out.ResourceLogs = append(out.ResourceLogs, resourceLogs{e.resource(p), []scopeLogs{{ownScope, records}}})
	}
	return &out
}
