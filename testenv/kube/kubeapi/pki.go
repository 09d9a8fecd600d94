package kubeapi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificates are valid for a day, and backdated by an hour for clocks that jump.
const (
	validBefore = time.Hour
	validFor    = 24 * time.Hour
)

// pair is a certificate with its key, in PEM.
type pair struct{ cert, key []byte }

// authority signs certificates, for servers and clients alike.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	template := certificate("kubeapi")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	return &authority{cert: cert, key: key, pem: encodePEM("CERTIFICATE", der)}, nil
}

// serviceAddresses are the addresses of the Service "kubernetes": the first ones of the
// servers' Service ranges.
var serviceAddresses = []net.IP{net.IPv4(10, 96, 0, 1), net.ParseIP("fd00:10:96::1")}

// server creates the API server's certificate. A test may reach the server through a proxy
// on the loopback of any network namespace, a pod through the Service.
func (a *authority) server() (pair, error) {
	template := certificate("kube-apiserver")
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default.svc"}
	template.IPAddresses = append([]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, serviceAddresses...)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.sign(template)
}

// client creates the certificate of a user in a group.
func (a *authority) client(user, group string) (pair, error) {
	template := certificate(user)
	template.Subject.Organization = []string{group}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-validBefore),
		NotAfter:     time.Now().Add(validFor),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func (a *authority) sign(template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("make key: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return pair{}, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	encoded, err := encodeKey(key)
	return pair{cert: encodePEM("CERTIFICATE", der), key: encoded}, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return encodePEM("EC PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Files in a server's directory.
const (
	authorityFile  = "ca.crt"
	serverCertFile = "server.crt"
	serverKeyFile  = "server.key"
	tokenKeyFile   = "tokens.key" // signs ServiceAccount tokens
)

// writePKI writes the API server's files to dir and returns the authority and the
// certificate of an administrator.
func writePKI(dir string) (*authority, pair, error) {
	ca, err := newAuthority()
	if err != nil {
		return nil, pair{}, err
	}
	server, err := ca.server()
	if err != nil {
		return nil, pair{}, err
	}
	admin, err := ca.client("kubeapi-admin", "system:masters")
	if err != nil {
		return nil, pair{}, err
	}
	tokens, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, pair{}, fmt.Errorf("make key: %w", err)
	}
	tokenKey, err := encodeKey(tokens)
	if err != nil {
		return nil, pair{}, err
	}
	for name, data := range map[string][]byte{
		authorityFile: ca.pem, serverCertFile: server.cert, serverKeyFile: server.key, tokenKeyFile: tokenKey,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, pair{}, fmt.Errorf("write certificates: %w", err)
		}
	}
	return ca, admin, nil
}
