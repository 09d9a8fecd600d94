{{- /* The name of the objects. */ -}}
{{- define "fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "account" -}}
{{- $own := .Values.serviceAccount.name -}}
{{- if .Values.serviceAccount.create }}{{ $own | default (include "fullname" .) }}{{ else }}{{ $own | default "default" }}{{ end -}}
{{- end -}}

{{- define "labels" -}}
app.kubernetes.io/name: {{ include "name" . }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
k8s-app: aws-node
app.kubernetes.io/version: {{ include "version" . | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "podLabels" -}}
app.kubernetes.io/name: {{ include "name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
k8s-app: aws-node
{{- include "strings" .Values.podLabels }}
{{- end -}}

{{- /* A DaemonSet's selector never changes: other labels need a new DaemonSet. */ -}}
{{- define "selector" -}}
{{- if .Values.originalMatchLabels -}}
k8s-app: aws-node
{{- else -}}
app.kubernetes.io/name: {{ include "name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- include "strings" .Values.podLabels }}
{{- end -}}
{{- end -}}

{{- /* The lines of a map of strings, each behind a newline. */ -}}
{{- define "strings" -}}
{{- range $key, $value := . }}
{{ $key }}: {{ include "text" $value | quote }}
{{- end -}}
{{- end -}}

{{- /* A value as text: files give numbers as floats, which print as 1.048576e+06. */ -}}
{{- define "text" -}}
{{- if kindIs "float64" . -}}
{{- if eq . (floor .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- else if or (kindIs "map" .) (kindIs "slice" .) -}}
{{- toJson . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{- define "tag" -}}
{{- .Values.image.tag | default .Values.global.image.tag | default .Chart.AppVersion -}}
{{- end -}}

{{- /* The tag of a reference, without a digest. */ -}}
{{- define "tagOf" -}}
{{- . | default "" | splitList "@" | first | regexFind ":[^:/]+$" | trimPrefix ":" -}}
{{- end -}}

{{- /* The version of the daemon: the tag of its image, wherever it is written, without a digest. */ -}}
{{- define "version" -}}
{{- include "tagOf" .Values.image.override | default (include "tag" . | splitList "@" | first) | default .Chart.AppVersion -}}
{{- end -}}

{{- /* An image: dict "root", "of" (its block of values), "name", "tag", and "amazon" if AWS
publishes it: it then comes from AWS's account in the region, unless its own block names
another. */ -}}
{{- define "image" -}}
{{- $all := .root.Values.global.image -}}
{{- $tag := .of.tag | default .tag -}}
{{- $account := .of.account | default (ternary "" $all.account (hasKey . "amazon")) -}}
{{- $region := .of.region | default $all.region -}}
{{- $domain := .of.domain | default $all.domain -}}
{{- $aws := false -}}
{{- range .root.Files.Lines "registry-accounts.csv" -}}
{{- $row := splitList "," . -}}
{{- if and $account (has $account $row) }}{{ $aws = true }}{{ end -}}
{{- if eq (index $row 0) $region -}}
{{- if $.amazon }}{{ $account = $account | default (index $row 1) }}{{ end -}}
{{- $domain = $domain | default (index $row 2) -}}
{{- end -}}
{{- end -}}
{{- if .of.override -}}
{{- .of.override -}}
{{- else if .of.overrideRepository -}}
{{- .of.overrideRepository }}:{{ $tag -}}
{{- else if and $aws (not .amazon) -}}
{{- fail (printf "the account %s is AWS's, which has no image %s. For values of upstream's chart, unset the account and tag (--set image.account=null,image.tag=null,init.image.account=null,init.image.tag=null) and set global.image.registry to the registry that you pushed the images to" $account .name) -}}
{{- else if $account -}}
{{- $account }}.dkr.{{ .of.endpoint | default $all.endpoint }}.{{ $region }}.{{ $domain | default "amazonaws.com" }}/{{ .name }}:{{ $tag -}}
{{- else if .amazon -}}
{{- fail (printf "AWS's account in region %s is not known: set nodeAgent.image.account" $region) -}}
{{- else if $all.registry -}}
{{- $all.registry }}/{{ .name }}:{{ $tag -}}
{{- else -}}
{{- fail (printf "no value says where the image %s is: set global.image.registry to the registry that you pushed the images to, such as registry.example/cni, or with ECR global.image.account and global.image.region" .name) -}}
{{- end -}}
{{- end -}}

{{- /* Refuses values of nodeAgent with which the agent could not start, or pods could not. Without
policies the agent does not dial the daemon, but the plugin dials the agent all the same. */ -}}
{{- define "checkAgent" -}}
{{- with .Values.nodeAgent -}}
{{- $metrics := include "text" .metricsBindAddr }}{{ $probes := include "text" .healthProbeBindAddr -}}
{{- if eq $metrics $probes -}}
{{- fail (printf "nodeAgent.metricsBindAddr and nodeAgent.healthProbeBindAddr are both %s, and the agent does not start. Use two ports, such as \"8162\" and \"8163\"" $metrics) -}}
{{- end -}}
{{- range list $metrics $probes -}}
{{- if has . (list "61678" "61679") -}}
{{- fail (printf "nodeAgent.metricsBindAddr or nodeAgent.healthProbeBindAddr is %s, a port of aws-node, which shares the host's network. Use other ports, such as \"8162\" and \"8163\"" .) -}}
{{- end -}}
{{- end -}}
{{- $tag := ternary (.image.tag | default "") (include "tagOf" .image.override) (empty .image.override) -}}
{{- with regexFind "^v(0|[1-9][0-9]*)([.](0|[1-9][0-9]*)){2}" $tag -}}
{{- if semverCompare "<1.2.6" . -}}
{{- fail (printf "the network policy agent of nodeAgent.image is %s: agents before v1.2.6 do not listen on the socket that the plugin dials, so no pod would start. Unset nodeAgent.image.tag and nodeAgent.image.override, or set v1.4.1 or later" .) -}}
{{- else if and (eq (include "text" $.Values.enableNetworkPolicy) "true") (semverCompare "<1.4.1" .) -}}
{{- fail (printf "the network policy agent of nodeAgent.image is %s, and enableNetworkPolicy is true: agents before v1.4.1 dial the daemon at 127.0.0.1:50051, where this daemon does not listen. Unset nodeAgent.image.tag and nodeAgent.image.override, or set v1.4.1 or later" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The environment of aws-node. What extraEnv names is there once, as extraEnv says. */ -}}
{{- define "env" -}}
{{- $env := merge (dict) .Values.env (dict "VPC_CNI_VERSION" (include "version" .)) -}}
{{- if not .Values.nodeAgent.enabled }}{{ $env = omit $env "NETWORK_POLICY_ENFORCING_MODE" }}{{ end -}}
{{- range .Values.extraEnv -}}
{{- if and (eq .name "NETWORK_POLICY_ENFORCING_MODE") (ne (toString .value) "none") (not $.Values.nodeAgent.enabled) -}}
{{- fail "extraEnv has NETWORK_POLICY_ENFORCING_MODE while nodeAgent.enabled is false: with that variable no pod starts without the agent. Remove the variable, or set nodeAgent.enabled to true" -}}
{{- end -}}
{{- $env = omit $env .name -}}
{{- end -}}
{{- $four := toString $env.ENABLE_IPv4 }}{{ $six := toString $env.ENABLE_IPv6 -}}
{{- if and (eq $four $six) (hasKey $env "ENABLE_IPv4") (hasKey $env "ENABLE_IPv6") -}}
{{- fail (printf "env.ENABLE_IPv4 and env.ENABLE_IPv6 are both %s, with which the daemon does not start. For IPv6 set env.ENABLE_IPv4=false, env.ENABLE_IPv6=true, env.ENABLE_PREFIX_DELEGATION=true, init.env.ENABLE_IPv6=true and nodeAgent.enableIpv6=true" $four) -}}
{{- end -}}
{{- range $name, $value := $env }}
- name: {{ $name }}
  value: {{ include "text" $value | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
- name: MY_NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
- name: MY_POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- end -}}

{{- /* With CNI_READY_WITH_ADDRESSES the probe asks for the service that is up only while a
pod could get an address. */ -}}
{{- define "readinessProbe" -}}
{{- $probe := deepCopy .Values.readinessProbe -}}
{{- if and (eq (toString .Values.env.CNI_READY_WITH_ADDRESSES) "true") $probe.exec -}}
{{- $_ := set $probe.exec "command" (append $probe.exec.command "-service=grpc.health.v1.aws-node") -}}
{{- end -}}
{{- toYaml (omit $probe "timeoutSeconds") -}}
{{- end -}}
