package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"cnictl/daemon/cluster"
)

// Errors that keep an annotation from being written, besides those of the API server.
var (
	// ErrReplaced means that another pod has the name now.
	ErrReplaced = errors.New("another pod has its name now")
	// ErrOtherValue means that the annotation does not have the value required by onlyIf.
	ErrOtherValue = errors.New("the annotation has another value")
)

// Refused reports whether the API server refused a write, or the pod's state prevents it:
// a retry would not help. Other errors mean that there was no answer.
func Refused(err error) bool {
	return answered(err) || errors.Is(err, ErrReplaced) || errors.Is(err, ErrOtherValue)
}

// AnnotatePod sets an annotation of exactly this pod, identified by its UID. With onlyIf,
// it does so only if the annotation has that value; a missing annotation counts as "".
func (c *Client) AnnotatePod(ctx context.Context, p cluster.Pod, key, value string, onlyIf *string) error {
	path, err := pods.object(p.Namespace, p.Name)
	if err == nil && p.UID == "" {
		err = errors.New("its UID is unknown")
	}
	if err == nil {
		err = c.annotate(ctx, p, path, key, value, onlyIf)
	}
	if err != nil {
		return fmt.Errorf("annotate pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

func (c *Client) annotate(ctx context.Context, p cluster.Pod, path, key, value string, onlyIf *string) error {
	// Without a condition the UID is guard enough, and one request does. After a conflict,
	// a GET shows whether the pod was replaced.
	look := onlyIf != nil
	return c.retryOnConflict(ctx, func() error {
		guard := map[string]any{"uid": p.UID, "annotations": map[string]string{key: value}}
		if look {
			meta, err := c.podMeta(ctx, p)
			if err != nil {
				return err
			}
			have := meta.Annotations[key]
			if have == value {
				return nil
			}
			if onlyIf != nil && have != *onlyIf {
				return fmt.Errorf("%w: %s is %.64q, not %.64q", ErrOtherValue, key, have, *onlyIf)
			}
			guard["resourceVersion"] = meta.ResourceVersion
		}
		look = true
		return replaced(c.patch(ctx, path, map[string]any{"metadata": guard}))
	})
}

// replaced recognises the error for a patch with a UID that is not the pod's. The API
// server takes the guard for an attempt to change the UID.
func replaced(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && apierrors.IsInvalid(err) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Field == "metadata.uid" {
				return fmt.Errorf("%w: %w", ErrReplaced, err)
			}
		}
	}
	return err
}

// podMeta reads a pod's metadata. The UID must match.
func (c *Client) podMeta(ctx context.Context, p cluster.Pod) (objectMeta, error) {
	raw, err := c.getObject(ctx, pods, p.Namespace, p.Name)
	if err != nil {
		return objectMeta{}, err
	}
	var object struct {
		Metadata objectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return objectMeta{}, err
	}
	if object.Metadata.UID != p.UID {
		return objectMeta{}, fmt.Errorf("%w (UID %s, not %s)", ErrReplaced, object.Metadata.UID, p.UID)
	}
	return object.Metadata, nil
}
