package main

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// front is a proxy for a fleet's API server that records when the nodes were listed.
type front struct {
	kubeconfig string
	server     *httptest.Server

	mu     sync.Mutex // guards listed
	listed time.Time  // when the last page of nodes was served
}

func newFront(f *fleet) (*front, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, err
	}
	behind, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, err
	}
	tls, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(behind) },
		Transport:     &http.Transport{TLSClientConfig: tls, MaxIdleConnsPerHost: 64},
		FlushInterval: -1, // watches
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	x := &front{kubeconfig: filepath.Join(filepath.Dir(f.kubeconfig), "front")}
	x.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(w, r)
		if r.Method == http.MethodGet && r.URL.Path == "/api/v1/nodes" && r.URL.Query().Get("watch") == "" {
			x.mu.Lock()
			x.listed = time.Now()
			x.mu.Unlock()
		}
	}))
	x.server.EnableHTTP2 = true
	x.server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that end during the handshake
	x.server.StartTLS()
	return x, x.write(f)
}

// write writes a kubeconfig for the proxy.
func (x *front) write(f *fleet) error {
	cfg, err := clientcmd.LoadFromFile(f.kubeconfig)
	if err != nil {
		return err
	}
	for _, c := range cfg.Clusters {
		c.Server = x.server.URL
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: x.server.Certificate().Raw})
	}
	if err := clientcmd.WriteToFile(*cfg, x.kubeconfig); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

func (x *front) lastPage() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.listed
}

func (x *front) close() {
	x.server.CloseClientConnections() // watches never end
	x.server.Close()
}
