package situation

import "cnictl/doctor/evidence"

// releaseName is the name of the Helm release in all documentation.
const releaseName = "aws-vpc-cni"

// expectInstallation sets up an installation by the chart, which took over the DaemonSet of the
// published manifest.
func (p *population) expectInstallation(r *evidence.Reading) {
	objects := []evidence.KubeObject{{Name: "CustomResourceDefinition/eniconfigs.crd.k8s.amazonaws.com", Managers: []evidence.Manager{{Name: "helm", Operation: "Update"}}}}
	if p.Daemon != "none" {
		for _, name := range []string{"DaemonSet/aws-node", "ServiceAccount/aws-node", "ClusterRole/aws-node", "ClusterRoleBinding/aws-node", "ConfigMap/amazon-vpc-cni"} {
			objects = append(objects, evidence.KubeObject{
				Name:        name,
				Labels:      map[string]string{"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": releaseName + "-1.23.1"},
				Annotations: map[string]string{"meta.helm.sh/release-name": releaseName, "meta.helm.sh/release-namespace": "kube-system"},
				Managers:    []evidence.Manager{{Name: "helm", Operation: "Update", Env: []string{"WARM_ENI_TARGET"}}},
			})
		}
	}
	objects = append(objects, evidence.KubeObject{Name: "CustomResourceDefinition/cninodes.vpcresources.k8s.aws"})
	r.Objects = evidence.Read(objects)
	r.Conflist = evidence.Read[*evidence.CNIConf](nil)
	r.Namespace = evidence.Read(evidence.Namespace{Labels: map[string]string{}, Quotas: []string{}})
	r.Admission = evidence.Read([]evidence.Admission{})
	r.Monitors = evidence.Read([]evidence.Monitor{})
	r.AddOn = evidence.Read[*evidence.AddOn](nil)
	r.BPFPins = evidence.Read([]string{})
}
