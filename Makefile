# Every target first sets up .venv with the pinned, hash-checked requirements: those of a run, or for test, lint, docs,
# generate, format and lock also those of development. They are compiled to bytecode here because on a read-only file
# system each of the hundreds of jobs would otherwise compile PyTorch again.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
CONFIG ?= config/config.yaml
BIN := .venv/bin
READY := .venv/.ready
READY_DEV := .venv/.ready-dev
ASSAY := $(BIN)/saliency-assay

# Snakemake fails if its cache in the home directory is not writable; the cache is then placed in this folder.
CACHE := $(or $(XDG_CACHE_HOME),$(if $(HOME),$(HOME)/.cache,$(CURDIR)/.snakemake/cache))
export XDG_CACHE_HOME := $(shell mkdir -p "$(CACHE)" 2>/dev/null && test -w "$(CACHE)" && echo "$(CACHE)" || echo "$(CURDIR)/.snakemake/cache")

# Containers often set this variable; each of the hundreds of processes of a run would then compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help env dev demo run table plan dry download test test-ci test-all test-python lint changes result-set package release gpu generate pictures docs format lock clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

# CPU=1 leaves out the CUDA packages that PyTorch does not load on a machine without a GPU; .venv/.cpu remembers it.
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python
EXCLUDES := $(if $(or $(CPU),$(wildcard .venv/.cpu)),--excludes workflow/envs/cpu_excludes.txt)
INSTALL_PINNED := $(INSTALL) --compile-bytecode --require-hashes $(EXCLUDES) -r

$(READY): pyproject.toml requirements.txt workflow/envs/bootstrap.txt workflow/envs/cpu_excludes.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { echo "PYTHON: found '$(PYTHON)', expected Python 3.11 to 3.13: make PYTHON=python3.11 …" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(if $(CPU),$(if $(wildcard .venv/bin),,@touch .venv/.cpu))
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r workflow/envs/bootstrap.txt
	$(INSTALL_PINNED) requirements.txt
	$(INSTALL) --no-deps --no-build-isolation --editable .
	touch $@

# lxt, against which AttnLRP is tested, without the packages for language models that it also requires.
$(READY_DEV): $(READY) requirements-dev.txt workflow/envs/lxt.txt
	$(INSTALL_PINNED) requirements-dev.txt
	$(INSTALL) --no-deps --require-hashes -r workflow/envs/lxt.txt
	touch $@

env: $(READY) ## Create .venv with the pinned packages of a run; CPU=1 leaves out most of what only GPUs need
	$(if $(CPU),@test -e .venv/.cpu || { echo "CPU=1: .venv already has the CUDA packages; delete it first" >&2; exit 1; })

dev: $(READY_DEV) ## Add the pinned packages of tests, lint and documentation to .venv

demo: run ## Run config/config.yaml on synthetic data and write results/report.html

$(CONFIG):
	@echo "CONFIG: $(CONFIG): no such file" >&2; exit 1

run: $(READY) $(CONFIG) ## Run CONFIG=path/to/configuration.yaml on this machine
	@$(ASSAY) run $(CONFIG)

table: $(READY) $(CONFIG) ## Export all results of CONFIG as CSV and LaTeX; runs missing jobs
	@$(ASSAY) table $(CONFIG)

plan: $(READY) $(CONFIG) ## Show the number of jobs and models, time and storage of each study of CONFIG, without running it
	@$(ASSAY) plan $(CONFIG)

dry: $(READY) $(CONFIG) ## Show how many jobs of each rule CONFIG would run, and what causes them, without running any
	@$(ASSAY) dry $(CONFIG)

# The rule runs every time, so that deleted files are restored; existing files are not downloaded again.
download: export SALIENCY_ASSAY_MIRROR := $(MIRROR)
download: $(READY) ## Download public data: DATA="cifar10 coco"; MIRROR=https://… replaces the publishers; without DATA, list the names
	@$(BIN)/python -m saliency_assay.data.download.command $(DATA) >$(if $(DATA),/dev/null,/dev/stdout)
	@$(if $(DATA),$(BIN)/snakemake --configfile $(CONFIG) --profile profiles/local --nolock --quiet all --forcerun download \
	  -- $(DATA:%=data/downloaded/%.json))

# Tests of a file that share a finished run run in one process (tests/conftest.py).
test: $(READY_DEV) ## Run the tests in about seven minutes: all but the slow ones and those on real images or a Slurm cluster
	$(BIN)/python -m pytest --numprocesses 2 --dist loadscope -m "not (slow or real or slurm or exhaustive)"

# Half of the time of all tests is spent on further cases of behavior that these tests check, too.
test-ci: $(READY_DEV) ## Run the tests of continuous integration: all but the exhaustive ones
	$(BIN)/python -m pytest --numprocesses 4 --dist loadscope -m "not exhaustive"

# Four processes on two cores, because many tests wait: for a Slurm cluster's scheduler, or for a run that others share.
test-all: $(READY_DEV) ## Run all tests, with more examples of the property-based ones
	HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest --numprocesses 4 --dist loadscope

# The tests of the Python API run with RESOLUTION=lowest-direct in the lowest versions that pyproject.toml allows for it,
# and all with RESOLUTION=highest in the newest versions. PYENV_VERSION lets uv find the interpreters of pyenv.
PYTHONS ?= 3.12 3.13
API_TESTS := tests/unit/api $(patsubst %,tests/analytic/test_%.py,aopc cam completeness deletion)
LOWEST := $(filter lowest%,$(RESOLUTION))
ifdef RESOLUTION
VERSIONS := --resolution $(RESOLUTION) --editable '.[$(if $(LOWEST),methods,imagenet),test]'
else
VERSIONS := $(EXCLUDES) --require-hashes -r requirements-dev.txt
endif
QUICK := $(if $(LOWEST),-W ignore::DeprecationWarning,tests/contract/test_imports.py tests/unit/config/test_config_read.py) \
  $(API_TESTS)
test-python: export PYENV_VERSION = $(shell pyenv versions --bare 2>/dev/null | paste -sd:)
test-python: export UV_PYTHON_DOWNLOADS := never
test-python: $(READY) ## Run the quickest tests and plan the demo under other versions: PYTHONS="3.12 3.13"; RESOLUTION=lowest-direct or highest
	@set -e; for python in $(PYTHONS); do env=$(CURDIR)/build/python$$python; \
	  echo "Python $$python$(if $(RESOLUTION), with $(RESOLUTION) versions):"; \
	  $(BIN)/uv venv --quiet --clear --no-project --python $$python $$env; \
	  $(BIN)/uv pip install --quiet --python $$env $(VERSIONS); \
	  $(BIN)/uv pip install --quiet --python $$env --no-deps --editable .; \
	  $$env/bin/python -m pytest --quiet -p no:cacheprovider $(QUICK) \
	    -m "not (slow or real or slurm or browser or exhaustive)"; \
	  $(if $(LOWEST),,(cd $$env && bin/saliency-assay dry config);) \
	  rm -r $$env; \
	done

BASE ?= HEAD^
# The status of compare is 1 if something differs; after an error there is no page.
changes: demo ## Also run the demo of commit BASE, and write how the results differ to build/changes/
	@rm -rf build/base build/changes && mkdir -p build/base build/changes
	@git archive $(BASE) | tar -x -C build/base
	@$(MAKE) --no-print-directory -C build/base demo
	@$(ASSAY) compare build/base/results results --html build/changes/changes.html >build/changes/changes.txt \
	  || test -s build/changes/changes.html
	@cat build/changes/changes.txt

CONFIGS ?= config/config.yaml
result-set: $(READY_DEV) ## Write report and tables of CONFIGS to build/saliency-assay-results.zip, for a release; runs missing jobs
	@for config in $(CONFIGS); do $(ASSAY) run $$config && $(ASSAY) table $$config || exit 1; done
	@$(BIN)/python -m tools.result_set build/saliency-assay-results.zip $(CONFIGS)

package: $(READY) ## Build wheel and sdist in build/release/, and plan the demo with the wheel in a new environment
	@rm -rf build/release
	@$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir build/release
	@$(BIN)/uv venv --quiet --clear --no-project --python $(BIN)/python build/smoke
	@$(BIN)/uv pip install --quiet --python build/smoke $(EXCLUDES) --require-hashes -r requirements.txt
	@$(BIN)/uv pip install --quiet --python build/smoke --no-deps build/release/*.whl
	@cd build/smoke && bin/saliency-assay plan config
	@rm -r build/smoke

# The version is checked first, because the rest takes minutes.
release: $(READY_DEV) ## Write the files of the release TAG=v1.2.3 to build/release/, with notes from the changelog
	@mkdir -p build && $(BIN)/python -m tools.release_notes "$(TAG)" >build/notes.md
	@$(MAKE) --no-print-directory docs result-set package
	@cd build && $(CURDIR)/$(BIN)/python -m zipfile -c release/saliency-assay-docs.zip docs
	@mv build/notes.md build/saliency-assay-results.zip build/release

gpu: $(READY_DEV) ## Run the tests and measurements that need a GPU, in at most ten minutes, and write docs/gpu.md
	$(BIN)/python benchmarks/gpu.py

generate: $(READY_DEV) ## Generate the schema and the documentation's tables from registries and settings
	$(BIN)/python -m tools.configuration_reference
	$(BIN)/python -m tools.record_tables
	$(BIN)/python -m tools.metric_records
	$(BIN)/python -m tools.rule_keys

pictures: $(READY_DEV) demo ## Remake the documentation's pictures whose runs are present; needs Debian's package chromium
	$(BIN)/python -m tools.pictures

docs: $(READY_DEV) ## Build the documentation site, build/docs/index.html; a broken link is an error
	@# Suppress the theme's notice about a future version of MkDocs; the version used is pinned.
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "Documentation: $(CURDIR)/build/docs/index.html"

lint: $(READY_DEV) docs ## Check style, types, spelling, the source tree, the workflow and the documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python -m tools.check_tree
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

format: $(READY_DEV) ## Format all code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

COMPILE := $(BIN)/uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
  --no-header --no-annotate

lock: $(READY_DEV) ## Update the pinned requirements and their hashes
	$(COMPILE) --upgrade --all-extras --output-file requirements-dev.txt pyproject.toml
	$(COMPILE) --upgrade --extra workflow --constraints requirements-dev.txt --output-file requirements.txt pyproject.toml
	echo lxt | $(COMPILE) --upgrade --no-deps --output-file workflow/envs/lxt.txt -
	echo uv | $(COMPILE) --upgrade --output-file workflow/envs/bootstrap.txt -
	grep == requirements.txt | grep -v ^python-dateutil= | tr -d '\\' > .venv/constraints.txt # boto3 needs an older dateutil
	printf 'snakemake-executor-plugin-kubernetes==0.5.0\nsnakemake-storage-plugin-s3\n' \
	  | $(COMPILE) --upgrade --constraints .venv/constraints.txt --output-file workflow/envs/kubernetes.txt -

clean: ## Remove results and caches, but not the environment
	rm -rf results results_* .snakemake .pytest_cache .mypy_cache .ruff_cache
