package root

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"cnictl/testenv/kube/fleetsim"
)

// altered puts an API server that changes objects in front of a simulated cluster. alter is
// called for each object in lists (not in watches), and the objects in more are added to the lists
// of their kinds. It returns the path of a kubeconfig.
func altered(t *testing.T, sim *fleetsim.Sim, alter func(kind string, object map[string]any), more map[string][]any) string {
	t.Helper()
	cfg := sim.RESTConfig()
	cfg.NextProtos = []string{"http/1.1"} // streams to nodes upgrade their connection
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(sim.URL())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // requests come at once, and alter changes more
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Accept-Encoding", "identity")
		},
		Transport: transport,
		ModifyResponse: func(r *http.Response) error {
			kind := map[string]string{"nodes": "Node", "pods": "Pod", "events": "Event", "cninodes": "CNINode"}[filepath.Base(r.Request.URL.Path)]
			if kind == "" && filepath.Base(filepath.Dir(r.Request.URL.Path)) == "pods" {
				kind = "Pod"
			}
			if kind == "" || r.StatusCode != http.StatusOK || r.Request.URL.Query().Has("watch") {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			return alterBody(r, kind, alter, more[kind])
		},
	})
	t.Cleanup(front.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}]}`, front.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// alterBody changes the objects in a response.
func alterBody(r *http.Response, kind string, alter func(string, map[string]any), more []any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var doc map[string]any
	if err := json.Unmarshal(body, &doc); err != nil {
		return err
	}
	items, isList := doc["items"].([]any)
	if !isList && doc["items"] == nil && doc["kind"] == kind {
		alter(kind, doc)
	}
	if doc["kind"] == kind+"List" {
		items = append(items, more...)
		for _, item := range items {
			alter(kind, item.(map[string]any))
		}
		doc["items"] = items
	}
	if body, err = json.Marshal(doc); err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// sandboxEvent is kubelet's event for a pod that got no address.
func sandboxEvent(namespace, pod, node string, at time.Time) map[string]any {
	when := at.UTC().Format(time.RFC3339)
	return map[string]any{
		"metadata":       map[string]any{"name": pod + ".1", "namespace": namespace, "uid": "11111111-2222-3333-4444-555555555555", "creationTimestamp": when},
		"involvedObject": map[string]any{"kind": "Pod", "namespace": namespace, "name": pod},
		"reason":         "FailedCreatePodSandBox", "message": "plugin type=\"aws-cni\" failed (add): failed to assign an IP address to container",
		"type": "Warning", "count": 3, "source": map[string]any{"component": "kubelet", "host": node}, "firstTimestamp": when, "lastTimestamp": when,
	}
}

// branchAnnotation is the annotation that the controller writes for a branch ENI.
const branchAnnotation = `[{"eniId":"eni-0123456789abcdef0","ifAddress":"0e:00:00:00:00:01","privateIp":"10.0.1.77","vlanId":1,"subnetCidr":"10.0.1.0/24","associationID":"trunk-assoc-1"}]`

// validated are the fields that Kubernetes itself validates: names, states, times and
// addresses.
var validated = []string{
	"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "nodeName", "phase", "type", "status", "podIP", "hostIP", "ip", "address", "kind", "apiVersion",
	"k8s-app", "host", "firstTimestamp", "lastTimestamp", "startTime", "lastTransitionTime", "lastHeartbeatTime", "startedAt", "finishedAt", "continue", "capacity", "allocatable",
}

// distort puts terminal escapes into every string of an object that Kubernetes does not
// validate.
func distort(v any, text string) any {
	switch v := v.(type) {
	case string:
		return v + text
	case []any:
		for i := range v {
			v[i] = distort(v[i], text)
		}
	case map[string]any:
		for key, value := range v {
			if value == "FailedCreatePodSandBox" || slices.Contains(validated, key) && key != "status" && key != "type" {
				continue
			}
			if word, ok := value.(string); ok && (key == "status" || key == "type") { // of a condition
				v[key] = word
				continue
			}
			v[key] = distort(value, text)
		}
	}
	return v
}

// TestMatrix_HostileKubernetes: terminal escapes in a cluster's labels, annotations, reasons and
// messages are printed escaped, in every form.
func TestMatrix_HostileKubernetes(t *testing.T) {
	t.Parallel()
	var text string
	if err := json.Unmarshal([]byte(`"`+act+`"`), &text); err != nil {
		t.Fatal(err)
	}
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 4, Seed: 5, Churn: -1, Named: map[string][]fleetsim.Trait{
		fleetsim.NodeName(1): {fleetsim.NotReady}, fleetsim.NodeName(2): {fleetsim.NoDaemon}, fleetsim.NodeName(3): {fleetsim.Hostile},
	}})
	evil := func(kind string, o map[string]any) {
		m := o["metadata"].(map[string]any)
		for _, of := range []string{"labels", "annotations"} {
			words, _ := m[of].(map[string]any)
			if words == nil {
				words = map[string]any{}
			}
			words["evil"], words[text] = text, text
			m[of] = words
		}
		distort(o, text)
		if kind == "Pod" {
			m["annotations"].(map[string]any)["vpc.amazonaws.com/pod-eni"] = strings.ReplaceAll(branchAnnotation, `eni-0123456789abcdef0`, act)
			status, _ := o["status"].(map[string]any)
			if status == nil {
				status = map[string]any{}
				o["status"] = status
			}
			if status["phase"] != "Running" || m["namespace"] != "kube-system" { // otherwise the daemon would not run
				status["reason"], status["message"] = text, text
			}
		}
	}
	event := sandboxEvent("shop", "cart-1", fleetsim.NodeName(0), time.Now())
	kubeconfig := altered(t, sim, evil, map[string][]any{"Event": {event}})
	w := &factWorld{kubeconfig: kubeconfig}
	pods := w.asked(t, []string{"node", "pods", fleetsim.NodeName(0), "-o", `jsonpath={range .items[*]}{.namespace}/{.name}{"\n"}{end}`}, ofSim)
	pod, _, _ := strings.Cut(pods, "\n")
	for _, command := range []string{
		"status", "nodes", "nodes --columns node,type,zone,instance,daemon,state", "node " + fleetsim.NodeName(1), "node " + fleetsim.NodeName(3), "node pods " + fleetsim.NodeName(0),
		"events", "pod " + pod, "trunks", "subnets", "top", "version",
	} {
		for _, form := range []string{"table", "wide", "csv", "name", "json", "yaml"} {
			if strings.Contains(command, "--columns") && form != "table" {
				continue
			}
			t.Run(command+"/"+form, func(t *testing.T) {
				t.Parallel()
				stdout, stderr, code := w.ran(t, append(strings.Fields(command), "-o", form), ofSim)
				checkNoControls(t, strings.ReplaceAll(stdout, "\t", " ")+stderr, false)
				if !slices.Contains([]int{0, 2, 4, 5, 6}, code) || stdout == "" && form != "name" && code != 5 && code != 2 {
					t.Errorf("exit %d\n%s", code, stderr)
				}
				if form == "json" && stdout != "" && !json.Valid([]byte(stdout)) {
					t.Errorf("not JSON:\n%.300s", stdout)
				}
				if wants := []string{"nodes", "events", "pod"}; form == "json" && slices.Contains(wants, strings.Fields(command)[0]) && !strings.Contains(stdout, "fake") {
					t.Errorf("what the cluster reports is not shown:\n%.2000s", stdout)
				}
			})
		}
	}
}
