package vpcrc

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// verdict is a webhook's decision.
type verdict struct {
	allowed bool
	message string
	pod     *corev1.Pod // the changed pod, nil if unchanged
}

func allow(message string) verdict { return verdict{allowed: true, message: message} }
func deny(message string) verdict  { return verdict{message: message} }

// mutatePod decides about a new pod. groups looks up the security groups of the policies that
// match the pod, and is called only if they matter.
func mutatePod(pod *corev1.Pod, groups func(*corev1.Pod) ([]string, error)) verdict {
	_, fargate := pod.Labels[fargateLabel]
	switch {
	case pod.Spec.HostNetwork:
		return allow("SGP not supported on Pod running on HostNetwork")
	case !fargate && onWindows(pod):
		return allow("Windows IPAM is not enabled")
	}
	matched, err := groups(pod)
	switch {
	case err != nil && fargate:
		return deny("Failed to get Matching SGP for Pods, rejecting event")
	case err != nil:
		return deny(fmt.Sprintf("Failed to get Matching SGP for Pods, rejecting event, error %v", err))
	case fargate:
		return annotateFargate(pod, matched)
	case len(matched) == 0 || len(pod.Spec.Containers) == 0:
		return allow("Pod didn't match any SGP")
	}
	return requestBranch(pod)
}

func onWindows(pod *corev1.Pod) bool {
	s := pod.Spec.NodeSelector
	return s[corev1.LabelOSStable] == "windows" || s["beta.kubernetes.io/os"] == "windows"
}

func requestBranch(pod *corev1.Pod) verdict {
	pod = pod.DeepCopy()
	r := &pod.Spec.Containers[0].Resources
	if r.Limits == nil {
		r.Limits = corev1.ResourceList{}
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	r.Limits[podENIKey], r.Requests[podENIKey] = resource.MustParse("1"), resource.MustParse("1")
	return verdict{allowed: true, pod: pod}
}

func annotateFargate(pod *corev1.Pod, groups []string) verdict {
	if _, there := pod.Annotations[fargateAnnotation]; !there && len(groups) == 0 {
		return allow("Pod didn't match any SGP")
	}
	pod = pod.DeepCopy()
	delete(pod.Annotations, fargateAnnotation)
	if len(groups) > 0 {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[fargateAnnotation] = strings.Join(groups, ",")
	}
	return verdict{allowed: true, pod: pod}
}

// controllers are the users that may write the annotation.
var controllers = []string{
	controllerUser,
	"system:serviceaccount:kube-system:vpc-resource-controller",
	"system:serviceaccount:kube-system:eks-vpc-resource-controller",
}

// validatePod decides about a pod that a user creates (old is nil) or updates.
func validatePod(user string, old, pod *corev1.Pod) verdict {
	value, there := pod.Annotations[podENIKey]
	if old == nil {
		if there {
			return deny("pod cannot be created with " + podENIKey + " annotation")
		}
		return allow("")
	}
	had, was := old.Annotations[podENIKey]
	if (there != was || value != had) && !slices.Contains(controllers, user) {
		return deny("annotation is not set by vpc-resource-controller")
	}
	if old.Annotations[fargateAnnotation] != pod.Annotations[fargateAnnotation] {
		return deny("annotation is not set by mutating webhook")
	}
	return allow("")
}

const nodeAgent = "system:serviceaccount:kube-system:aws-node"

// validateNode lets the node's daemon change only its two labels.
func validateNode(user string, old, node *corev1.Node) verdict {
	if user != nodeAgent {
		return allow("")
	}
	strip := func(n *corev1.Node) *corev1.Node {
		n = n.DeepCopy()
		n.Labels = maps.Clone(n.Labels)
		delete(n.Labels, trunkLabel)
		delete(n.Labels, eniConfigLabel)
		if len(n.Labels) == 0 {
			n.Labels = nil
		}
		n.ManagedFields, n.ResourceVersion, n.TypeMeta = nil, "", metav1.TypeMeta{}
		return n
	}
	if !equality.Semantic.DeepEqual(strip(old), strip(node)) {
		return deny("aws-node can only update limited fields on the Node Object")
	}
	return allow("")
}
