package vpcrc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	mutatePodPath    = "/mutate-v1-pod"
	validatePodPath  = "/validate-v1-pod"
	validateNodePath = "/validate-v1-node"
)

var (
	mutatingResource   = admission.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations")
	validatingResource = admission.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")
)

// register creates the two configurations, replacing existing ones.
func (s *webhookServer) register(ctx context.Context) error {
	if err := s.unregister(ctx); err != nil {
		return err
	}
	type object struct {
		res  schema.GroupVersionResource
		kind string
		body any
	}
	for _, o := range []object{
		{mutatingResource, "MutatingWebhookConfiguration", s.mutating()},
		{validatingResource, "ValidatingWebhookConfiguration", s.validating()},
	} {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.body)
		if err != nil {
			return fmt.Errorf("encode webhooks: %w", err)
		}
		u := &unstructured.Unstructured{Object: fields}
		u.SetAPIVersion(admission.SchemeGroupVersion.String())
		u.SetKind(o.kind)
		if _, err := s.c.api.of(o.res, "").Create(ctx, u, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("register webhooks: %w", err)
		}
	}
	return nil
}

func (s *webhookServer) unregister(ctx context.Context) error {
	var errs []error
	for name, res := range map[string]schema.GroupVersionResource{mutatingWebhooks: mutatingResource, validatingWebhooks: validatingResource} {
		if err := s.c.api.of(res, "").Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("remove webhooks: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (s *webhookServer) mutating() *admission.MutatingWebhookConfiguration {
	ignore, equivalent, none := admission.Ignore, admission.Equivalent, admission.SideEffectClassNone
	return &admission.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: mutatingWebhooks},
		Webhooks: []admission.MutatingWebhook{{
			Name: "mpod.vpc.k8s.aws", ClientConfig: s.client(mutatePodPath), Rules: rules("pods", admission.Create),
			FailurePolicy: &ignore, MatchPolicy: &equivalent, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

func (s *webhookServer) validating() *admission.ValidatingWebhookConfiguration {
	of := func(name, path string, rules []admission.RuleWithOperations) admission.ValidatingWebhook {
		ignore, equivalent, none := admission.Ignore, admission.Equivalent, admission.SideEffectClassNone
		return admission.ValidatingWebhook{Name: name, ClientConfig: s.client(path), Rules: rules,
			FailurePolicy: &ignore, MatchPolicy: &equivalent, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}}
	}
	return &admission.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: validatingWebhooks},
		Webhooks: []admission.ValidatingWebhook{
			of("vpod.vpc.k8s.aws", validatePodPath, rules("pods", admission.Create, admission.Update)),
			of("vnode.vpc.k8s.aws", validateNodePath, rules("nodes", admission.Update)),
		},
	}
}

func (s *webhookServer) client(path string) admission.WebhookClientConfig {
	url := s.base + path
	return admission.WebhookClientConfig{URL: &url, CABundle: s.ca}
}

func rules(resource string, verbs ...admission.OperationType) []admission.RuleWithOperations {
	return []admission.RuleWithOperations{{Operations: verbs, Rule: admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}}}}
}

// selfSigned creates a self-signed certificate for the loopback.
func selfSigned() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("make webhook key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "vpc-resource-controller"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("make webhook certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func serverTLS(cert tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
}
