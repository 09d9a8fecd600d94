package reading

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/doctor/evidence"
)

func TestTrust(t *testing.T) {
	t.Parallel()
	const provider = "arn:aws:iam::1:oidc-provider/oidc.test/id/A"
	for name, row := range map[string]struct {
		document string
		want     []evidence.Trust
	}{
		"none":   {`{}`, []evidence.Trust{}},
		"denied": {`{"Statement":[{"Effect":"Deny","Principal":"*","Action":"*"}]}`, []evidence.Trust{}},
		"anyone": {`{"Statement":{"Effect":"Allow","Principal":"*","Action":"sts:*"}}`, []evidence.Trust{{Principals: []string{"*"}, Actions: []string{"sts:*"}, Subjects: []string{}, Audiences: []string{}}}},
		"token": {
			`{"Statement":[{"Effect":"Allow","Principal":{"Federated":["` + provider + `"]},"Action":["sts:AssumeRoleWithWebIdentity"],"Condition":{"StringLike":{"oidc.test/id/A:sub":["b","a*"]},"StringEquals":{"oidc.test/id/A:aud":"c"},"Bool":{"aws:x":"true"}}}]}`,
			[]evidence.Trust{{Principals: []string{provider}, Actions: []string{"sts:AssumeRoleWithWebIdentity"}, Subjects: []string{"a*", "b"}, Audiences: []string{"c"}}},
		},
		"condition of another provider": {
			`{"Statement":[{"Effect":"Allow","Principal":{"Federated":"` + provider + `"},"Action":"x","Condition":{"StringEquals":{"oidc.test/id/B:sub":"a"}}}]}`,
			[]evidence.Trust{{Principals: []string{provider}, Actions: []string{"x"}, Subjects: []string{"oidc.test/id/B:sub=a"}, Audiences: []string{}}},
		},
	} {
		got, err := Trust(row.document)
		if d := cmp.Diff(row.want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
	for _, document := range []string{"", "[]", `{"Statement":7}`, `{"Statement":[{"Action":{}}]}`} {
		if got, err := Trust(document); err == nil {
			t.Errorf("%s: %+v", document, got)
		}
	}
}
