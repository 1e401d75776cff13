# Every target sets up what it needs: .venv with the pinned requirements, all checked against their hashes, and compiled
# to bytecode, else each of the hundreds of jobs may compile PyTorch anew: some environments forbid to write what it finds.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
CONFIG ?= config/config.yaml
BIN := .venv/bin
READY := .venv/.ready
# In this order: after --configfile, which takes several, a target would be read as one more. A file that cannot be read
# is one line; Snakemake would answer some with a traceback.
SNAKEMAKE := $(BIN)/python -m saliency_assay.config.yaml_text $(CONFIG) && $(BIN)/snakemake --configfile $(CONFIG) --profile profiles/local

# Snakemake keeps a cache in the home directory and ends in a traceback where it cannot: then it has one here.
CACHE := $(or $(XDG_CACHE_HOME),$(if $(HOME),$(HOME)/.cache,$(CURDIR)/.snakemake/cache))
export XDG_CACHE_HOME := $(shell mkdir -p "$(CACHE)" 2>/dev/null && test -w "$(CACHE)" && echo "$(CACHE)" || echo "$(CURDIR)/.snakemake/cache")

.DEFAULT_GOAL := help
.PHONY: help env demo run table plan dry download test lint generate docs format lock clean

help: ## Show what there is to make
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

$(READY): requirements.txt envs/bootstrap.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r envs/bootstrap.txt
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@

env: $(READY) ## Make .venv with the pinned packages; every other target does so first

demo: run ## Run config/config.yaml on synthetic data and write results/report.html

$(CONFIG):
	@echo "CONFIG: $(CONFIG): no such file" >&2; exit 1

run: $(READY) $(CONFIG) ## Run CONFIG=path/to/configuration.yaml on this machine
	@$(SNAKEMAKE)
	@$(BIN)/python -c "import pathlib, yaml; \
	  made = yaml.safe_load(open('$(CONFIG)')).get('results', 'results'); \
	  print('Report:', pathlib.Path(made, 'report.html').resolve())"

table: $(READY) $(CONFIG) ## Export all results of CONFIG as CSV and LaTeX; runs what is missing
	@$(SNAKEMAKE) table
	@$(BIN)/python -c "import pathlib, yaml; \
	  made = yaml.safe_load(open('$(CONFIG)')).get('results', 'results'); \
	  print('Tables:', pathlib.Path(made, 'export').resolve())"

plan: $(READY) $(CONFIG) ## Show how many jobs and models each study of CONFIG takes, hours and storage, without running it
	@$(SNAKEMAKE) plan --nolock --quiet all

dry: $(READY) $(CONFIG) ## Show which jobs CONFIG would run now, and why, without running them
	@$(SNAKEMAKE) --dry-run

# Asked anew each time, so that data which were deleted come back; what is there is not fetched again.
download: export SALIENCY_ASSAY_MIRROR := $(MIRROR)
download: $(READY) ## Fetch public data: DATA="cifar10 coco"; MIRROR=https://… instead of the publishers; without DATA, list them
	@$(BIN)/python -m saliency_assay.data.download.command $(DATA) >$(if $(DATA),/dev/null,/dev/stdout)
	@$(if $(DATA),$(SNAKEMAKE) --nolock --quiet all --forcerun download -- $(DATA:%=data/downloaded/%.json))

# Tests that start Snakemake share its results, file by file. Tests on a local Slurm run at the same time, because they
# mostly wait; their output comes last.
test: $(READY) ## Run all tests
	@status=0; log=$$(mktemp); \
	  $(BIN)/python -m pytest --numprocesses 2 --dist worksteal \
	    --ignore tests/workflow --ignore tests/real --ignore tests/cluster || status=1; \
	  $(BIN)/python -m pytest tests/cluster >$$log 2>&1 & cluster=$$!; \
	  $(BIN)/python -m pytest --numprocesses 2 --dist loadfile tests/workflow tests/real || status=1; \
	  wait $$cluster || status=1; \
	  cat $$log; rm $$log; exit $$status

generate: $(READY) ## Write what the schema and the documentation take from records and settings
	$(BIN)/python -m tools.configuration_reference
	$(BIN)/python -m tools.record_tables
	$(BIN)/python -m tools.metric_records

docs: $(READY) ## Build the documentation as a site, build/docs/index.html; a broken link is an error
	@# The theme's notice on a future version of MkDocs; the version that is used is pinned.
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "Documentation: $(CURDIR)/build/docs/index.html"

lint: $(READY) docs ## Check style, types, the source tree, the workflow and the documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.check_tree
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint

format: $(READY) ## Put all code into the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile rules

lock: $(READY) ## Pin all requirements anew, with hashes
	$(BIN)/uv pip compile --quiet --upgrade --universal --fork-strategy fewest --python-version 3.11 --all-extras --generate-hashes \
	  --no-header --no-annotate --output-file requirements.txt pyproject.toml
	echo uv | $(BIN)/uv pip compile --quiet --upgrade --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --output-file envs/bootstrap.txt -

clean: ## Remove results and caches, but not the environment
	rm -rf results results_* .snakemake .pytest_cache .mypy_cache .ruff_cache
