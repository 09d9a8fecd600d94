package root_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/testenv/kube/fleetsim"
)

// front is a proxy of a simulator's API server that counts list requests.
type front struct {
	kubeconfig string
	change     func(r *http.Request, body []byte) []byte // changes the answers, of a watch each of its lines; nil if none
	fails      func(r *http.Request) bool                // requests answered with 500; nil if none

	mu    sync.Mutex
	lists map[string]int // by resource; guarded by mu
	pods  []url.Values   // queries about the pods of all namespaces; guarded by mu
}

// before puts a front before sim, for a user with all rights except the denied ones.
func before(t *testing.T, sim *fleetsim.Sim, denied ...string) *front {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(sim.KubeconfigOf("operator", denied...))
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(sim.URL())
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(cfg.CAData) {
		t.Fatalf("the simulator's address or CA: %v", err)
	}
	// HTTP/2 is off, because a stream to a node takes over its connection.
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}}}
	f := &front{lists: map[string]int{}}
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, ModifyResponse: f.modify, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Del("Accept-Encoding") // so that the transport unpacks answers for change
		r.Out.Header.Set("Authorization", "Bearer "+cfg.BearerToken)
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.count(r)
		if f.fails != nil && f.fails(r) {
			http.Error(w, "overloaded", http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		transport.CloseIdleConnections()
	})
	kube := clientcmdapi.NewConfig()
	kube.Clusters["sim"] = &clientcmdapi.Cluster{Server: s.URL}
	kube.Contexts["sim"] = &clientcmdapi.Context{Cluster: "sim"}
	kube.CurrentContext = "sim"
	f.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kube, f.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *front) modify(r *http.Response) error {
	if f.change == nil || r.Request.Method != http.MethodGet || r.StatusCode != http.StatusOK {
		return nil
	}
	if r.Request.URL.Query().Get("watch") != "" {
		r.Body = &changedLines{
			ReadCloser: r.Body, lines: bufio.NewReader(r.Body),
			change: func(line []byte) []byte { return f.change(r.Request, line) },
		}
		r.ContentLength = -1
		r.Header.Del("Content-Length")
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	changed := f.change(r.Request, body)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(changed)), int64(len(changed))
	r.Header.Set("Content-Length", strconv.Itoa(len(changed)))
	return nil
}

// changedLines changes each line of a stream as it arrives.
type changedLines struct {
	io.ReadCloser
	lines  *bufio.Reader
	change func([]byte) []byte
	rest   []byte
}

func (c *changedLines) Read(into []byte) (int, error) {
	if len(c.rest) == 0 {
		line, err := c.lines.ReadBytes('\n')
		if err != nil {
			return copy(into, line), err // a line that is not complete is not changed; it is of no use
		}
		c.rest = append(bytes.TrimSuffix(c.change(bytes.TrimSuffix(line, []byte("\n"))), []byte("\n")), '\n')
	}
	n := copy(into, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (f *front) count(r *http.Request) {
	resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Method == http.MethodGet && r.URL.Path == "/api/v1/pods" {
		f.pods = append(f.pods, r.URL.Query())
	}
	if r.Method != http.MethodGet || r.URL.Query().Get("watch") != "" {
		return
	}
	f.lists[resource]++
}

func (f *front) listed(resource string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists[resource]
}

// factory returns the factory of a tool that has no other kubeconfig.
func factory(t *testing.T, out, errOut *lineWriter) *cli.Factory {
	t.Helper()
	home := t.TempDir()
	return &cli.Factory{
		Streams: &cli.Streams{Out: out, Err: errOut}, Now: time.Now, Name: "cnictl", Version: "v1.2.3",
		Env: func(name string) (string, bool) {
			v, ok := map[string]string{"HOME": home, "XDG_CACHE_HOME": home, "PATH": os.Getenv("PATH")}[name]
			return v, ok
		},
		Tick: func(d time.Duration) (<-chan time.Time, func()) {
			ticker := time.NewTicker(d) //realtime: as main does
			return ticker.C, ticker.Stop
		},
	}
}

// lineWriter splits what is written into lines and calls line for each.
type lineWriter struct {
	line func(string)

	mu   sync.Mutex
	rest []byte
	all  bytes.Buffer
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(b)
	w.rest = append(w.rest, b...)
	for {
		line, rest, complete := bytes.Cut(w.rest, []byte("\n"))
		if !complete {
			return len(b), nil
		}
		w.rest = rest
		if w.line != nil {
			w.line(string(line))
		}
	}
}

func (w *lineWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}
