{{- /* The name of the objects. */ -}}
{{- define "fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "account" -}}
{{- $own := .Values.serviceAccount.name -}}
{{- if .Values.serviceAccount.create }}{{ $own | default (include "fullname" .) }}{{ else }}{{ $own | default "default" }}{{ end -}}
{{- end -}}

{{- define "roleKind" -}}
{{ ternary "ClusterRole" "Role" .Values.clusterRole }}
{{- end -}}

{{- define "tag" -}}
{{- .Values.image.tag | default .Chart.AppVersion -}}
{{- end -}}

{{- define "labels" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
k8s-app: cni-metrics-helper
app.kubernetes.io/version: {{ include "tag" . | splitList "@" | first | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "image" -}}
{{- $aws := false -}}
{{- range .Files.Lines "registry-accounts.csv" -}}
{{- if has (toString $.Values.image.account) (splitList "," .) }}{{ $aws = true }}{{ end -}}
{{- end -}}
{{- with .Values.image -}}
{{- if .override -}}
{{- .override -}}
{{- else if and .account $aws -}}
{{- fail (printf "the account %v is AWS's, whose image is not this release. For values of upstream's chart, unset the account and tag (--set image.account=null,image.tag=null) and set image.registry to the registry that you pushed the image to" .account) -}}
{{- else if .account -}}
{{- .account }}.dkr.ecr.{{ .region }}.{{ .domain }}/cni-metrics-helper:{{ include "tag" $ -}}
{{- else if .registry -}}
{{- .registry }}/cni-metrics-helper:{{ include "tag" $ -}}
{{- else -}}
{{- fail "no value says where the image cni-metrics-helper is: set image.registry to the registry that you pushed it to, such as registry.example/cni, or with ECR image.account and image.region" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* A value as text: files give numbers as floats, which print as 1.048576e+06. */ -}}
{{- define "text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}
