"""The script: what people do with kubectl, step by step."""

from __future__ import annotations

from dataclasses import dataclass

NAMESPACE = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:1
        ports: [{containerPort: 80}]
        resources: {requests: {cpu: 0.1, memory: 64Mi}}
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {colour: blue, size: "3"}
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
"""
DB = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: db, image: "db:1"}]
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    metadata: {annotations: {kedge.dev/complete-after: 1s}}
    spec:
      restartPolicy: Never
      containers: [{name: once, image: "once:1"}]
"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.kubectl.kedge.dev}
spec:
  group: kubectl.kedge.dev
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, shortNames: [bt], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.oars, statusReplicasPath: .status.oars}}
    additionalPrinterColumns:
    - {name: Oars, type: integer, jsonPath: .spec.oars}
    - {name: Colour, type: string, jsonPath: .spec.colour, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [oars]
            x-kubernetes-validations: [{rule: "self.oars % 2 == 0", message: oars come in pairs}]
            properties:
              oars: {type: integer, minimum: 0, maximum: 12}
              colour: {type: string, default: blue, enum: [blue, red]}
          status:
            type: object
            properties: {oars: {type: integer}}
"""
BOAT = """
apiVersion: kubectl.kedge.dev/v1
kind: Boat
metadata: {name: gig}
spec: {oars: 4, sails: 1}
"""


@dataclass(frozen=True)
class Step:
    """One call of kubectl. Its output counts, or its last line, or its lines in any order; or nothing but success."""

    args: str
    stdin: str = ""
    shown: str = "all"  # all, last, sorted, none
    fails: bool = False
    until: str = ""  # ask again until the output has this
    during: tuple[str, ...] = ()  # what is done while it runs


STEPS = [
    Step("api-resources", shown="sorted"),
    Step("apply -f -", NAMESPACE),
    Step("get namespace shop"),
    Step("wait --for=create serviceaccount/default -n shop --timeout=300s", shown="none"),
    Step("apply -n shop -f -", CONFIG),
    Step("apply -n shop -f -", CONFIG),
    Step("get configmap settings -n shop"),
    Step("get configmap settings -n shop -o yaml"),
    Step("get configmap settings -n shop -o yaml --show-managed-fields"),
    Step("get configmap settings -n shop -o jsonpath={.data.colour}"),
    Step("describe configmap settings -n shop"),
    Step("get service web -n shop -o wide"),
    Step("get service web -n shop -o yaml"),
    Step("apply -n shop -f -", WEB),
    Step("rollout status deployment/web -n shop --timeout=300s", shown="last"),
    Step("get deployment web -n shop"),
    Step("get deployment web -n shop -o wide"),
    Step("get replicasets -n shop -o wide"),
    Step("get pods -n shop"),
    Step("get pods -n shop -l app=web -o name", shown="sorted"),
    Step("get pods -n shop -l app!=web"),
    Step("get pods -n shop --field-selector=status.phase=Running -o name", shown="sorted"),
    Step("get pods -n shop -o wide", shown="sorted"),
    Step("get deployment web -n shop -o yaml"),
    Step("get replicasets -n shop -o yaml"),
    Step("describe deployment web -n shop", shown="sorted"),  # events of one second come in any order
    Step("describe replicaset -l app=web -n shop", shown="sorted"),
    Step("describe service web -n shop", shown="sorted"),
    Step("get endpointslices -n shop -l kubernetes.io/service-name=web", shown="sorted"),
    Step("get all -n shop", shown="sorted"),
    Step("set image deployment/web web=web:2 -n shop"),
    Step("rollout status deployment/web -n shop --timeout=300s", shown="last"),
    Step("rollout history deployment/web -n shop"),
    Step("rollout history deployment/web -n shop --revision=2"),
    Step("rollout undo deployment/web -n shop", shown="all"),
    Step("rollout status deployment/web -n shop --timeout=300s", shown="last"),
    Step("get deployment web -n shop -o jsonpath={.spec.template.spec.containers[0].image}"),
    Step("rollout restart deployment/web -n shop"),
    Step("rollout status deployment/web -n shop --timeout=300s", shown="last"),
    Step("rollout pause deployment/web -n shop"),
    Step("rollout resume deployment/web -n shop"),
    Step("scale deployment web --replicas=3 -n shop"),
    Step("wait --for=jsonpath={.status.readyReplicas}=3 deployment/web -n shop --timeout=300s"),
    Step("scale deployment web --replicas=1 --current-replicas=7 -n shop", fails=True),
    Step("wait --for=condition=Available deployment/web -n shop --timeout=300s"),
    Step("wait --for=condition=Nonsense deployment/web -n shop --timeout=1s", fails=True),
    Step("""patch deployment web -n shop -p {"spec":{"minReadySeconds":1}}"""),
    Step("""patch deployment web -n shop --type=merge -p {"spec":{"revisionHistoryLimit":5}}"""),
    Step("""patch deployment web -n shop --type=json -p [{"op":"remove","path":"/spec/minReadySeconds"}]"""),
    Step(
        "patch deployment web -n shop "
        """-p {"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:3"}]}}}}"""
    ),
    Step("""patch deployment web -n shop -p {"spec":{"replicas":"many"}}""", fails=True),
    Step("""patch deployment web -n shop --subresource=status --type=merge -p {"status":{"collisionCount":1}}"""),
    Step("rollout status deployment/web -n shop --timeout=300s", shown="last"),
    Step("get configmap settings -n shop --watch --request-timeout=3s"),
    Step(
        "get configmaps -n shop -l app=web --watch --output-watch-events --request-timeout=6s",
        during=(
            "label configmap settings seen=once -n shop",
            "label configmap settings app=other --overwrite -n shop",
            "label configmap settings app=web --overwrite -n shop",
        ),
    ),
    Step(
        "get configmap settings -n shop --watch-only -o jsonpath={.data.colour} --request-timeout=6s",
        during=("""patch configmap settings -n shop --type=merge -p {"data":{"colour":"red"}}""",),
    ),
    Step("label configmap settings tier=front -n shop"),
    Step("annotate configmap settings note=hello -n shop"),
    Step("get configmaps -n shop --show-labels -l tier"),
    Step("apply -n shop --server-side -f -", WEB, fails=True),
    Step("apply -n shop --server-side --force-conflicts -f -", WEB),
    Step("rollout status deployment/web -n shop --timeout=300s", shown="last"),  # its status is shown in an error below
    Step("wait --for=jsonpath={.status.terminatingReplicas}=0 deployment/web -n shop --timeout=300s"),
    Step(
        "apply -n shop --server-side --field-manager=other -f -", WEB.replace("replicas: 2", "replicas: 4"), fails=True
    ),
    Step("diff -n shop -f -", WEB),
    Step("get deployment web -n shop -o yaml --show-managed-fields", shown="none"),
    Step("apply -n shop --dry-run=server -f -", WEB.replace("web:1", "web:9")),
    Step("apply -n shop -f -", WEB.replace("containerPort", "containerPorts"), fails=True),
    Step("apply -n shop -f -", WEB.replace("app: web}}\n  template", "app: other}}\n  template"), fails=True),
    Step("apply -n shop -f -", DB),
    Step("rollout status statefulset/db -n shop --timeout=300s", shown="last"),
    Step("get statefulset db -n shop -o wide"),
    Step("get pods -n shop -l app=db"),
    Step("describe statefulset db -n shop", shown="sorted"),
    Step("rollout restart statefulset/db -n shop"),
    Step("rollout status statefulset/db -n shop --timeout=300s", shown="last"),
    Step("apply -n shop -f -", JOB),
    Step("wait --for=condition=Complete job/once -n shop --timeout=300s"),
    Step("get job once -n shop"),
    Step("delete job once -n shop"),
    Step("apply -f -", CRD),
    Step("wait --for=condition=Established crd/boats.kubectl.kedge.dev --timeout=300s"),
    Step("get crd boats.kubectl.kedge.dev"),
    Step("api-resources --api-group=kubectl.kedge.dev -o wide"),
    Step("apply -n shop --validate=false -f -", BOAT),
    Step("apply -n shop -f -", BOAT, fails=True),
    Step("get boats -n shop"),
    Step("get bt gig -n shop -o wide"),
    Step("get boat gig -n shop -o yaml"),
    Step("describe boat gig -n shop"),
    Step("""patch boat gig -n shop --type=merge -p {"spec":{"oars":3}}""", fails=True),
    Step("""patch boat gig -n shop --type=merge -p {"spec":{"colour":"green"}}""", fails=True),
    Step("scale boat gig --replicas=6 -n shop"),
    Step("explain boat.spec"),
    Step("delete boat gig -n shop"),
    Step("delete crd boats.kubectl.kedge.dev"),
    Step("get boats -n shop", fails=True),
    Step("delete deployment web -n shop --cascade=orphan"),
    Step("get replicasets -n shop -o name", shown="sorted"),
    Step("delete replicaset -l app=web -n shop --cascade=foreground", shown="sorted"),
    Step("get pods -n shop -l app=web", until="No resources found"),
    Step("delete statefulset db -n shop --cascade=background"),
    Step("get nothing -n shop", fails=True),
    Step("get deployment nothing -n shop", fails=True),
    Step("delete configmap nothing -n shop", fails=True),
    Step("delete namespace shop --timeout=300s"),
    Step("get namespace shop", fails=True),
    # What kubectl makes by itself it sends in protobuf.
    Step("create namespace yard"),
    Step("wait --for=create serviceaccount/default -n yard --timeout=300s", shown="none"),
    Step("create deployment web --image=web:1 --port=80 --replicas=2 -n yard"),
    Step("rollout status deployment/web -n yard --timeout=300s", shown="last"),
    Step("get deployment web -n yard -o yaml"),
    Step("create deployment web --image=web:1 -n yard", fails=True),
    Step("create deployment Bad_Name --image=web:1 -n yard", fails=True),
    Step("create configmap settings --from-literal=colour=blue -n yard -o yaml"),
    Step("create secret generic keys --from-literal=k=v -n yard -o yaml"),
    Step("create service clusterip web --tcp=80:8080 -n yard"),
    Step("create ingress web --rule=a.io/=web:80,tls=t -n yard -o yaml"),
    Step("create role reader --verb=get,list --resource=pods,deployments.apps -n yard -o yaml"),
    Step("create rolebinding readers --role=reader --user=u -n yard -o yaml"),
    Step("create poddisruptionbudget web --selector=app=web --min-available=1 -n yard"),
    Step("create cronjob often --image=web:1 --schedule='*/5 * * * *' -n yard -o yaml"),
    Step("autoscale deployment web --min=2 --max=5 --cpu=50% -n yard"),
    Step("get hpa web -n yard -o jsonpath={.spec}"),
    Step("create quota small --hard=pods=30,memory=1.5Gi -n yard"),
    Step("auth can-i create pods -n yard"),
    Step("auth whoami", shown="none"),
    Step("delete namespace yard --timeout=300s"),
]
