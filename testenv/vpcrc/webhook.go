package vpcrc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxReview bounds a request from the API server: two objects of at most 3 MiB.
const maxReview = 8 << 20

// webhookServer answers the API server over the loopback.
type webhookServer struct {
	c      *Controller
	server *http.Server
	base   string // https://127.0.0.1:PORT
	ca     []byte // PEM
	done   chan struct{}
}

// serveWebhooks starts the server and registers it.
func (c *Controller) serveWebhooks(ctx context.Context) (*webhookServer, error) {
	cert, ca, err := selfSigned()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	s := &webhookServer{c: c, base: "https://" + l.Addr().String(), ca: ca, done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+mutatePodPath, s.review(s.mutatePod))
	mux.HandleFunc("POST "+validatePodPath, s.review(validatePodReview))
	mux.HandleFunc("POST "+validateNodePath, s.review(validateNodeReview))
	s.server = &http.Server{Handler: mux, TLSConfig: serverTLS(cert), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() {
		defer close(s.done)
		_ = s.server.ServeTLS(l, "", "") // always ErrServerClosed, or the listener's end
	}()
	if err := s.register(ctx); err != nil {
		return nil, errors.Join(err, s.stop(ctx))
	}
	return s, nil
}

// stop removes the registrations, even if ctx has ended, and stops the server.
func (s *webhookServer) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := s.unregister(ctx)
	err = errors.Join(err, s.server.Close())
	<-s.done
	return err
}

// review serves one webhook.
func (s *webhookServer) review(decide func(context.Context, *admissionv1.AdmissionRequest) (verdict, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.c.Faults().WebhookDown {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReview)).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
			return
		}
		answer, err := respond(r.Context(), review.Request, decide)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Request, review.Response = nil, answer
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // fails only if the client is gone
	}
}

func respond(ctx context.Context, q *admissionv1.AdmissionRequest, decide func(context.Context, *admissionv1.AdmissionRequest) (verdict, error)) (*admissionv1.AdmissionResponse, error) {
	v, err := decide(ctx, q)
	if err != nil {
		return nil, err
	}
	a := &admissionv1.AdmissionResponse{UID: q.UID, Allowed: v.allowed, Result: &metav1.Status{Message: v.message}}
	if !v.allowed {
		a.Result.Code, a.Result.Reason = http.StatusForbidden, metav1.StatusReason(v.message)
	}
	if v.pod != nil {
		if a.Patch, err = patchOf(v.pod); err != nil {
			return nil, err
		}
		kind := admissionv1.PatchTypeJSONPatch
		a.PatchType = &kind
	}
	return a, nil
}

// patchOf writes in full each field that a mutation may have changed.
func patchOf(p *corev1.Pod) ([]byte, error) {
	type op struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	annotations := p.Annotations
	if annotations == nil {
		annotations = map[string]string{}
	}
	ops := []op{{"add", "/metadata/annotations", annotations}}
	if len(p.Spec.Containers) > 0 {
		ops = append(ops, op{"add", "/spec/containers/0/resources", p.Spec.Containers[0].Resources})
	}
	return json.Marshal(ops)
}

func (s *webhookServer) mutatePod(ctx context.Context, q *admissionv1.AdmissionRequest) (verdict, error) {
	pod, err := reviewed[corev1.Pod](q.Object.Raw)
	if err != nil || pod == nil {
		return verdict{}, errors.Join(err, errIfNil(pod))
	}
	pod.Namespace = q.Namespace // the object may omit it
	return s.c.mutate(ctx, pod), nil
}

func validatePodReview(_ context.Context, q *admissionv1.AdmissionRequest) (verdict, error) {
	old, err := reviewed[corev1.Pod](q.OldObject.Raw)
	if err != nil {
		return verdict{}, err
	}
	pod, err := reviewed[corev1.Pod](q.Object.Raw)
	if err != nil || pod == nil {
		return verdict{}, errors.Join(err, errIfNil(pod))
	}
	return validatePod(q.UserInfo.Username, old, pod), nil
}

func validateNodeReview(_ context.Context, q *admissionv1.AdmissionRequest) (verdict, error) {
	old, err := reviewed[corev1.Node](q.OldObject.Raw)
	if err != nil || old == nil {
		return verdict{}, errors.Join(err, errIfNil(old))
	}
	node, err := reviewed[corev1.Node](q.Object.Raw)
	if err != nil || node == nil {
		return verdict{}, errors.Join(err, errIfNil(node))
	}
	return validateNode(q.UserInfo.Username, old, node), nil
}

// reviewed decodes an object of a review. It returns nil if the review has none.
func reviewed[T any](raw []byte) (*T, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, fmt.Errorf("decode reviewed object: %w", err)
	}
	return out, nil
}

func errIfNil[T any](o *T) error {
	if o == nil {
		return errors.New("the review has no object")
	}
	return nil
}
