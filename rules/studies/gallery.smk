"""The gallery that every study has, whatever its kind."""


rule plot_gallery:
    input:
        unpack(INPUTS.plot_gallery),
    output:
        image="<results>/figures/{study}/gallery.png",
        page=report(
            "<results>/figures/{study}/gallery.html",
            caption="../../workflow/report/gallery.rst",
            category="Study {study}",
            labels={"shown": "the same images under every method"},
        ),
    log:
        "<logs>/plot_gallery/{study}.log",
    benchmark:
        "<benchmarks>/plot_gallery/{study}.tsv"
    conda:
        "../../envs/report.yaml"
    params:
        settings=PARAMS.plot_gallery,
    script:
        "../../workflow/scripts/plot_gallery.py"
