package ec2

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
)

// TestEKS_Endless: an answer without an end is refused once it is too long.
func TestEKS_Endless(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.WriteString(w, `{"cluster":{"name":"`)
		for part := strings.Repeat("a", 64<<10); err == nil && r.Context().Err() == nil; {
			_, err = io.WriteString(w, part)
		}
	}))
	defer server.Close()
	r, err := New(t.Context(), Options{Endpoint: server.URL, Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", "")})
	if err != nil {
		t.Fatal(err)
	}
	var into struct{ Cluster struct{ Name string } }
	if err := (eksClient{r, "eu-west-1"}).DescribeCluster(t.Context(), "shop", &into); err == nil || !strings.Contains(err.Error(), "longer than 16 MiB") {
		t.Errorf("%v, a name of %d bytes", err, len(into.Cluster.Name))
	}
}

// TestRead_NoRegion: without a region nothing is asked.
func TestRead_NoRegion(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	r, err := New(t.Context(), Options{Endpoint: "http://127.0.0.1:1", Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", "")})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Read(t.Context(), "", []string{"i-1"}); !strings.Contains(got.Instances.Missing, "set AWS_REGION") || got.Subnets.Missing != got.Instances.Missing || r.Requests() != 0 {
		t.Errorf("%q after %d requests", got.Instances.Missing, r.Requests())
	}
}
