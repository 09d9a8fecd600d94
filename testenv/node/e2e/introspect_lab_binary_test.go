package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/testenv"
	"cnictl/testenv/node"
)

// inNode is where a node serves introspection by default.
const inNode = "127.0.0.1:61679"

// door is a server on this machine's loopback that forwards into a node, for clients that
// dial by themselves.
type door struct {
	Addr string

	dial  func() (net.Conn, error)
	mu    sync.Mutex
	conns map[net.Conn]bool // guarded by mu; nil once closed
	count int               // connections so far; guarded by mu
}

// door starts a door to an address in a node; network is "tcp" or "unix".
func (l *lab) door(n *node.Node, network, addr string) *door {
	l.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	d := &door{Addr: ln.Addr().String(), conns: map[net.Conn]bool{}, dial: func() (net.Conn, error) { return n.Dial(network, addr, testenv.Left(l.t)) }}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			outer, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { d.pass(outer) })
		}
	})
	l.t.Cleanup(func() {
		_ = ln.Close()
		d.mu.Lock()
		for c := range d.conns {
			_ = c.Close()
		}
		d.conns = nil
		d.mu.Unlock()
		all.Wait()
	})
	return d
}

// pass forwards one connection until either end closes it.
func (d *door) pass(outer net.Conn) {
	defer outer.Close()
	inner, err := d.dial()
	if err != nil {
		return
	}
	defer inner.Close()
	if !d.hold(outer, inner) {
		return
	}
	defer d.release(outer, inner)
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{outer, inner}, {inner, outer}} {
		go func() { // ends when either connection is closed, which happens after the first copy ends
			_, _ = io.Copy(pair[0], pair[1])
			ended <- struct{}{}
		}()
	}
	<-ended
	_, _ = outer.Close(), inner.Close()
	<-ended
}

func (d *door) hold(conns ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	for _, c := range conns {
		if d.conns == nil {
			return false
		}
		d.conns[c] = true
	}
	return true
}

func (d *door) release(conns ...net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range conns {
		delete(d.conns, c)
	}
}

// opened counts the connections so far.
func (d *door) opened() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// cut closes all connections, even in the middle of a request.
func (d *door) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		_ = c.Close()
	}
}

// client reads a node through a door.
func (l *lab) client(d *door) *client.Client {
	l.t.Helper()
	c, err := client.New(client.Options{Address: d.Addr, UserAgent: "cnictl/test", Now: time.Now})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(c.Close)
	return c
}

// introspection waits until a node's introspection answers, and returns a client over TCP.
func (l *lab) introspection(n *node.Node) (*client.Client, *door) {
	l.t.Helper()
	d := l.door(n, "tcp", inNode)
	c := l.client(d)
	testenv.Eventually(l.t, "introspection", func() bool { _, _, err := c.Summary(l.t.Context()); return err == nil })
	return c, d
}

// answer is the response to a plain request.
type answer struct {
	status int
	header http.Header
	body   []byte // as sent, possibly compressed
}

// ask makes a plain request, without decompression or caching.
func (l *lab) ask(d *door, path string, header map[string]string) answer {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, "http://"+d.Addr+path, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	resp, err := c.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, body}
}

// schemas are the schemas that a node serves, by kind.
type schemas map[string]map[string]any

func (l *lab) schemas(d *door) schemas {
	l.t.Helper()
	var list introspect.SchemaList
	if err := json.Unmarshal(l.ask(d, introspect.PathSchemas, nil).body, &list); err != nil || len(list.Items) == 0 {
		l.t.Fatalf("list of schemas: %+v, %v", list, err)
	}
	out := schemas{}
	for _, ref := range list.Items {
		var s map[string]any
		if err := json.Unmarshal(l.ask(d, ref.Path, nil).body, &s); err != nil {
			l.t.Fatalf("schema %s: %v", ref.Path, err)
		}
		out[ref.Kind] = s
	}
	return out
}

// check validates a document against the schema of its kind. It knows the part of JSON Schema
// that our schemas use, and rejects members that the schema does not name.
func (all schemas) check(t *testing.T, body []byte) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var doc map[string]any
	if err := dec.Decode(&doc); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	kind, _ := doc["kind"].(string)
	root, ok := all[kind]
	if !ok {
		t.Fatalf("no schema is served of kind %q: %.200s", kind, body)
	}
	for _, problem := range fits(root, root, kind, doc) {
		t.Errorf("not as its schema says: %s", problem)
	}
}

// fits lists where a value violates a schema.
func fits(root, schema map[string]any, at string, v any) (wrong []string) {
	if ref, ok := schema["$ref"].(string); ok {
		defs, _ := root["$defs"].(map[string]any)
		target, ok := defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		if !ok {
			return []string{at + ": " + ref + " leads nowhere"}
		}
		return fits(root, target, at, v)
	}
	if either, ok := schema["anyOf"].([]any); ok {
		for _, one := range either {
			if wrong = fits(root, one.(map[string]any), at, v); len(wrong) == 0 {
				return nil
			}
		}
		return wrong
	}
	if want, ok := schema["const"]; ok && want != v {
		return []string{fmt.Sprintf("%s: %v, want %v", at, v, want)}
	}
	if types, there := schema["type"]; there && !strings.Contains(fmt.Sprint(types), jsonType(v)) && !(strings.Contains(fmt.Sprint(types), "number") && jsonType(v) == "integer") {
		return []string{fmt.Sprintf("%s: %s where %v is expected", at, jsonType(v), types)}
	}
	switch v := v.(type) {
	case string:
		if _, err := time.Parse(time.RFC3339Nano, v); schema["format"] == "date-time" && err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %q is no time", at, v))
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i, one := range v {
			wrong = append(wrong, fits(root, items, fmt.Sprintf("%s[%d]", at, i), one)...)
		}
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for name, one := range v {
			s, ok := properties[name].(map[string]any)
			if !ok {
				s, ok = schema["additionalProperties"].(map[string]any)
			}
			if !ok {
				wrong = append(wrong, at+"."+name+": not in the schema")
				continue
			}
			wrong = append(wrong, fits(root, s, at+"."+name, one)...)
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, there := v[name.(string)]; !there {
				wrong = append(wrong, fmt.Sprintf("%s.%s: missing", at, name))
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

func jsonType(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number"
		}
		return "integer"
	}
	return "object"
}

// wire sends a framed request to the daemon as the plugin does, without creating a pod, and
// returns the reply's frame.
func (l *lab) wire(n *node.Node, frame []byte) []byte {
	l.t.Helper()
	answer, err := exchange(l.t, n, frame)
	if err != nil {
		l.t.Fatal(err)
	}
	return answer
}

func exchange(t testing.TB, n *node.Node, frame []byte) ([]byte, error) {
	conn, err := n.Dial("unix", node.LeanSocket, testenv.Left(t))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	return cniwire.ReadFrame(conn, nil)
}

// sandbox describes a pod that exists only for the daemon: it has no namespace and no link.
func sandbox(i int) *cniwire.AddRequest {
	return &cniwire.AddRequest{
		PodName: fmt.Sprintf("wire-%d", i), PodNamespace: "default", PodUID: "0", IfName: "eth0", NetworkName: "aws-cni",
		ContainerID: fmt.Sprintf("%064x", 0xabc0000+i), Netns: "/run/netns/none", ClientVersion: "test",
	}
}

func (l *lab) wireAdd(n *node.Node, r *cniwire.AddRequest) *cniwire.AddReply {
	l.t.Helper()
	reply, err := cniwire.DecodeAddReply(l.wire(n, cniwire.AppendAddRequest(nil, r)))
	if err != nil {
		l.t.Fatal(err)
	}
	return reply
}

func (l *lab) wireDel(n *node.Node, r *cniwire.AddRequest) *cniwire.DelReply {
	l.t.Helper()
	reply, err := cniwire.DecodeDelReply(l.wire(n, cniwire.AppendDelRequest(nil, &cniwire.DelRequest{
		PodName: r.PodName, PodNamespace: r.PodNamespace, PodUID: r.PodUID, ContainerID: r.ContainerID, IfName: r.IfName,
		NetworkName: r.NetworkName, Reason: "PodDeleted", ClientVersion: r.ClientVersion,
	})))
	if err != nil {
		l.t.Fatal(err)
	}
	return reply
}

// pluginError returns the error that a plugin printed, nil if none.
func pluginError(err error) *node.PluginError {
	var p *node.PluginError
	if errors.As(err, &p) {
		return p
	}
	return nil
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return p != "" && strings.Contains(text, p) })
}
