package fleetsim

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const maxReview = 64 << 10

// review answers a SelfSubjectAccessReview, always in JSON. kubectl sends it in protobuf.
func (s *Sim) review(w http.ResponseWriter, r *http.Request, who user) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxReview))
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	var doc authorizationv1.SelfSubjectAccessReview
	if err := decodeReview(body, &doc); err != nil {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: "the body of the request was in an unknown format - accepted media types include: application/json",
		}}
	}
	doc.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}
	doc.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	if a := doc.Spec.ResourceAttributes; a != nil {
		resource := a.Resource
		if a.Subresource != "" {
			resource += "/" + a.Subresource
		}
		doc.Status.Allowed = who.may(access{a.Verb, a.Group, resource, a.Namespace, a.Name})
	}
	if doc.Status.Allowed {
		doc.Status.Reason = "RBAC: allowed by ClusterRoleBinding \"fleetsim\""
	}
	w.Header().Set("Content-Type", contentJSON)
	w.WriteHeader(http.StatusCreated)
	return json.NewEncoder(w).Encode(doc)
}

// protobufMagic is the prefix of Kubernetes' envelope around a protobuf object.
var protobufMagic = []byte("k8s\x00")

func decodeReview(body []byte, into *authorizationv1.SelfSubjectAccessReview) error {
	wrapped, ok := bytes.CutPrefix(body, protobufMagic)
	if !ok {
		return json.Unmarshal(body, into)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(wrapped); err != nil {
		return err
	}
	return into.Unmarshal(envelope.Raw)
}
