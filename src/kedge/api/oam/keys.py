"""Keys: the groups, labels, annotations and finalizers of OAM that Kedge reads and writes."""

from __future__ import annotations

from typing import Final

STANDARD: Final = "standard.oam.dev"
CORE: Final = "core.oam.dev"

# Annotations of an Application
ROLLOUT_TEMPLATE: Final = "app.oam.dev/rollout-template"
"""`true`: a rollout brings this Application in; its own controller leaves it alone until the annotation is gone."""
CREATING: Final = "app.oam.dev/creating"
"""`true`: what was generated from the Application is reconciled for the first time."""
APPCONFIG_ROLLOUT: Final = "app.oam.dev/appconfig-rollout"
"""`true`: this ApplicationConfiguration upgrades another one in place."""
ROLLING_COMPONENTS: Final = "app.oam.dev/rolling-components"
"""The components, separated by commas, that something rolls out: their workloads are only written frozen."""

# Annotations of a Rollout, and of the workloads it brings in
SKIP_GC: Final = "app.oam.dev/skipGC"
WORKLOAD_NAME: Final = "trait.oam.dev/workload-name"
WORKLOAD_GVK: Final = "trait.oam.dev/workload-gvk"

# Labels of workloads
NAME_LABEL: Final = "app.oam.dev/name"
COMPONENT_LABEL: Final = "app.oam.dev/component"
REVISION_LABEL: Final = "app.oam.dev/revision"
APP_REVISION_LABEL: Final = "app.oam.dev/appRevision"
COMPONENT_OF_REVISION: Final = "controller.oam.dev/component"
"""Label of a ControllerRevision: the Component whose revision it is."""

# Ours
CLAIM: Final = "kedge.dev/rolled-by"
"""Annotation of a workload: the rollout that moves it now, as `kind/name/uid`. Only one can."""
LEFT: Final = "kedge.dev/left-by"
"""Annotation of a workload: the rollout that failed to move it and let go, as `kind/name/uid`. Only that may take it
back, and only while nobody has moved it since."""
FROZEN: Final = "kedge.dev/strategy-before"
"""Annotation of a workload that was frozen: the strategy it had, as JSON."""
AUTOSCALER_BEFORE: Final = "kedge.dev/autoscaler-before"
"""Annotation of an autoscaler that a rollout stopped: which rollout, and what it was before, as JSON."""
SELECTOR_BEFORE: Final = "kedge.dev/selector-before"
"""Annotation of a Service whose selector a rollout narrowed: which rollout, and the selector it had, as JSON."""
ASSUME_ACCEPTED: Final = "kedge.dev/assume-accepted"
"""`true`: an HTTPRoute whose gateway reports nothing. That it was written counts as accepted."""

WORKLOAD_LABEL: Final = "kedge.dev/workload"
"""Label of the pods of a Deployment, also in its selector: the Deployment's name."""

ROLLOUT_FINALIZER: Final = "finalizers.rollout.standard.oam.dev"
APP_ROLLOUT_FINALIZER: Final = "finalizers.approllout.oam.dev"
RETRY: Final = "kedge.dev/retry"
"""Annotation of a rollout: another value than before starts a failed one again."""
ABORT: Final = "kedge.dev/abort"
"""Annotation of a rollout, `true`: stop it for good. What has moved stays where it is."""
