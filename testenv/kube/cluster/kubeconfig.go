package cluster

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes an administrator's kubeconfig with the given server address to a
// file that only its owner can read.
func (c *Cluster) WriteKubeconfig(file, address string) error {
	admin := c.API.Admin()
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{
		Server:                   "https://" + address,
		TLSServerName:            "localhost", // whatever the address
		CertificateAuthorityData: admin.CAData,
	}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: admin.CertData, ClientKeyData: admin.KeyData}
	config.Contexts["cluster"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "admin"}
	config.CurrentContext = "cluster"
	if err := clientcmd.WriteToFile(*config, file); err != nil { // 0600
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
