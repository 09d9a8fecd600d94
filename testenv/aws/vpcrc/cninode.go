package vpcrc

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// newCNINode returns the CNINode for a Node. spec is that of a deleted CNINode, or nil.
func newCNINode(n *corev1.Node, spec map[string]any) *unstructured.Unstructured {
	if spec == nil {
		spec = map[string]any{"tags": map[string]any{cninodeClusterTag: clusterName}}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(cninodesResource.GroupVersion().String())
	u.SetKind("CNINode")
	u.SetName(n.Name)
	u.SetFinalizers([]string{cninodeFinalizer})
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(n, corev1.SchemeGroupVersion.WithKind("Node"))})
	if os, there := n.Labels[corev1.LabelOSStable]; there {
		u.SetLabels(map[string]string{corev1.LabelOSStable: os})
	}
	return u
}

// ensureCNINode gets a Node's CNINode, and creates it for a new Node. It returns nil if
// the CNINode does not exist.
func (r *run) ensureCNINode(ctx context.Context, n *corev1.Node) (*cninode, error) {
	c, err := get[cninode](ctx, r.api, cninodesResource, "", n.Name)
	r.mu.Lock()
	met := r.met[n.Name]
	r.met[n.Name] = met || c != nil
	r.mu.Unlock()
	if err != nil || c != nil || met {
		return c, err
	}
	u, err := r.api.of(cninodesResource, "").Create(ctx, newCNINode(n, nil), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create CNINode %s: %w", n.Name, err)
	}
	r.mu.Lock()
	r.met[n.Name] = true
	r.mu.Unlock()
	return into[cninode](u)
}

// reconcileCNINode completes a CNINode, and recreates one that is deleted while its Node
// exists.
func (r *run) reconcileCNINode(ctx context.Context, name string) (time.Duration, error) {
	u, err := r.api.of(cninodesResource, "").Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("get CNINode %s: %w", name, err)
	}
	c, err := into[cninode](u)
	if err != nil {
		return 0, err
	}
	n, err := get[corev1.Node](ctx, r.api, nodesResource, "", name)
	switch {
	case err != nil || !c.ours():
		return 0, err
	case c.DeletionTimestamp == nil:
		return 0, r.completeCNINode(ctx, c, n)
	}
	if err := r.releaseFinalizer(ctx, c); err != nil {
		r.event(ctx, corev1.ObjectReference{Kind: "CNINode", Name: name, UID: c.UID}, corev1.EventTypeWarning, "CNINodeDeletionFailed", "CNINode delete failed, will be retried")
		return 0, err
	}
	if n == nil {
		return 0, nil
	}
	if err := r.recreate(ctx, n, u); err != nil {
		r.event(ctx, nodeRef(name), corev1.EventTypeWarning, "CNINodeCreationFailed", "CNINode was deleted and failed to be recreated by the vpc-resource-controller")
		return 0, err
	}
	return 0, nil
}

// completeCNINode adds a missing tag, label or finalizer, but no missing owner.
func (r *run) completeCNINode(ctx context.Context, c *cninode, n *corev1.Node) error {
	meta, patch := map[string]any{}, map[string]any{}
	if !slices.Contains(c.Finalizers, cninodeFinalizer) {
		meta["finalizers"] = append(slices.Clone(c.Finalizers), cninodeFinalizer)
	}
	if n != nil && n.Labels[corev1.LabelOSStable] != "" && c.Labels[corev1.LabelOSStable] == "" {
		meta["labels"] = map[string]any{corev1.LabelOSStable: n.Labels[corev1.LabelOSStable]}
	}
	if c.Spec.Tags[cninodeClusterTag] == "" {
		patch["spec"] = map[string]any{"tags": map[string]any{cninodeClusterTag: clusterName}}
	}
	if len(meta) == 0 && len(patch) == 0 {
		return nil
	}
	meta["resourceVersion"] = c.ResourceVersion // the list of finalizers is replaced as a whole
	patch["metadata"] = meta
	return r.api.merge(ctx, cninodesResource, "", c.Name, patch)
}

// releaseFinalizer removes our finalizer and waits until the object is gone.
func (r *run) releaseFinalizer(ctx context.Context, c *cninode) error {
	rest := slices.DeleteFunc(slices.Clone(c.Finalizers), func(f string) bool { return f == cninodeFinalizer })
	err := r.api.merge(ctx, cninodesResource, "", c.Name, map[string]any{"metadata": map[string]any{"finalizers": rest}})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	for range recreateWait / (recreateWait / 6) {
		left, err := get[cninode](ctx, r.api, cninodesResource, "", c.Name)
		if err != nil || left == nil || left.UID != c.UID {
			return err
		}
		if !r.wait(recreateWait / 6) {
			return ctx.Err()
		}
	}
	return fmt.Errorf("CNINode %s is still there: another finalizer holds it", c.Name)
}

func (r *run) recreate(ctx context.Context, n *corev1.Node, old *unstructured.Unstructured) error {
	if r.Faults().CNINodeNotRecreated {
		return fmt.Errorf("create CNINode %s: it is switched off", n.Name)
	}
	spec, _, err := unstructured.NestedMap(old.Object, "spec")
	if err != nil {
		return fmt.Errorf("decode CNINode %s: %w", n.Name, err)
	}
	_, err = r.api.of(cninodesResource, "").Create(ctx, newCNINode(n, spec), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create CNINode %s: %w", n.Name, err)
	}
	return nil
}
