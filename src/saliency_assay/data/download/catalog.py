"""Public data sets and weights with their addresses, sizes and checksums.

To add one, write a record here and its line in docs/data.md. The rule ``download`` fetches the requested ones; no other
rule uses the network. The Snakefile imports this module whenever it is parsed, so it has no heavy imports.
"""

from dataclasses import dataclass

TORCHVISION = "torchvision's source"
TFDS = "TensorFlow Datasets' checksum list"
FILE_NAME = "first eight digits from the publisher's file name, the others computed from that file"


@dataclass(frozen=True)
class Remote:
    """One file to fetch.

    ``to``, relative to the data folder, is the folder into which an archive is unpacked, or the path of any other file.
    ``size`` is in bytes, 0 if unpublished. ``checksum`` is ``md5:`` or ``sha256:`` followed by hexadecimal digits, or
    empty if unpublished; ``checksum_source`` is the source of the checksum.
    """

    url: str
    to: str
    size: int = 0
    checksum: str = ""
    checksum_source: str = "no published checksum"
    archive: bool = False

    @property
    def name(self) -> str:
        """Last component of the address, which a mirror must keep."""
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Download:
    """A data set or weights file that can be requested by name.

    ``layout`` lists the resulting files in the data folder. ``by_hand`` contains instructions for data that cannot be
    downloaded automatically; such a record has no files.
    """

    name: str
    title: str
    page: str
    license: str
    layout: str
    files: tuple[Remote, ...] = ()
    by_hand: str = ""

    @property
    def size(self) -> int:
        """Total bytes of all files whose size is known."""
        return sum(file.size for file in self.files)


def _mnist(name: str, size: int, md5: str) -> Remote:
    url = f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}"
    return Remote(url, f"mnist/{name}", size, f"md5:{md5}", TORCHVISION)


def _coco(path: str, size: int, sha256: str) -> Remote:
    url = f"http://images.cocodataset.org/{path}"
    return Remote(url, "coco", size, f"sha256:{sha256}", TFDS, archive=True)


def _weights(to: str, url: str, size: int, sha256: str) -> tuple[Remote]:
    return (Remote(url, to, size, f"sha256:{sha256}", FILE_NAME),)


_MINIPLACES_KIT = "https://raw.githubusercontent.com/CSAILVision/miniplaces/master/data"

DOWNLOADS = (
    Download(
        name="cifar10",
        title="CIFAR-10, binary version",
        page="https://www.cs.toronto.edu/~kriz/cifar.html",
        license="none stated; images from the web; cite Krizhevsky 2009",
        layout="cifar10/cifar-10-batches-bin/",
        files=(
            Remote(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "cifar10",
                170_052_171,
                "md5:c32a1d4ab5d03f1284b67883e8d87530",
                "the page",
                archive=True,
            ),
        ),
    ),
    Download(
        name="stl10",
        title="STL-10, binary version",
        page="https://cs.stanford.edu/~acoates/stl10",
        license="none stated; images from ImageNet; cite Coates et al. 2011",
        layout="stl10/stl10_binary/",
        files=(
            Remote(
                "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
                "stl10",
                2_640_397_119,
                "md5:91f7769df0f17e558f3565bffb0c7dfb",
                TORCHVISION,
                archive=True,
            ),
        ),
    ),
    Download(
        name="mnist",
        title="MNIST, the four original files",
        page="http://yann.lecun.com/exdb/mnist",
        license="none stated with the files; cite LeCun et al. 1998",
        layout="mnist/train-images-idx3-ubyte.gz, …",
        files=(
            _mnist("train-images-idx3-ubyte.gz", 9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
            _mnist("train-labels-idx1-ubyte.gz", 28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
            _mnist("t10k-images-idx3-ubyte.gz", 1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
            _mnist("t10k-labels-idx1-ubyte.gz", 4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
        ),
    ),
    Download(
        name="coco",
        title="COCO 2017, training and validation images with annotations",
        page="https://cocodataset.org",
        license="annotations CC BY 4.0; images under their Flickr licenses, which the annotations list",
        layout="coco/annotations/, coco/train2017/, coco/val2017/",
        files=(
            _coco(
                "annotations/annotations_trainval2017.zip",
                252_907_541,
                "113a836d90195ee1f884e704da6304dfaaecff1f023f49b6ca93c4aaae470268",
            ),
            _coco(
                "zips/val2017.zip",
                815_585_330,
                "4f7e2ccb2866ec5041993c9cf2a952bbed69647b115d0f74da7ce8f4bef82f05",
            ),
            _coco(
                "zips/train2017.zip",
                19_336_861_798,
                "69a8bb58ea5f8f99d24875f21416de2e9ded3178e903f1f7603e283b9e06d929",
            ),
        ),
    ),
    Download(
        name="miniplaces",
        title="MiniPlaces: images, object annotations, and the lists of its development kit",
        page="https://github.com/CSAILVision/miniplaces",
        license="for research and education; images from Places2",
        layout="miniplaces/images/, miniplaces/objects/, miniplaces/categories.txt, train.txt, val.txt, "
        "object_categories.txt",
        files=(
            *(
                Remote(f"{_MINIPLACES_KIT}/{name}.txt", f"miniplaces/{name}.txt")
                for name in ("categories", "train", "val", "object_categories")
            ),
            Remote("https://places.csail.mit.edu/miniplaces/data/data.tar.gz", "miniplaces", archive=True),
        ),
    ),
    Download(
        name="resnet50",
        title="ResNet-50, torchvision's ImageNet weights (IMAGENET1K_V1)",
        page="https://docs.pytorch.org/vision/stable/models.html",
        license="BSD 3-Clause for torchvision; the weights are trained on ImageNet, which is for research",
        layout="resnet50_imagenet.pth",
        files=_weights(
            "resnet50_imagenet.pth",
            "https://download.pytorch.org/models/resnet50-0676ba61.pth",
            102_530_333,
            "0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a",
        ),
    ),
    Download(
        name="vgg16",
        title="VGG16, torchvision's ImageNet weights (IMAGENET1K_V1)",
        page="https://docs.pytorch.org/vision/stable/models.html",
        license="BSD 3-Clause for torchvision; the weights are trained on ImageNet, which is for research",
        layout="vgg16_imagenet.pth",
        files=_weights(
            "vgg16_imagenet.pth",
            "https://download.pytorch.org/models/vgg16-397923af.pth",
            553_433_881,
            "397923af8e79cdbb6a7127f12361acd7a2f83e06b05044ddf496e83de57a5bf0",
        ),
    ),
    Download(
        name="resnet20",
        title="ResNet-20, CIFAR-10 weights by Yerlan Idelbayev",
        page="https://github.com/akamaster/pytorch_resnet_cifar10",
        license="BSD 2-Clause",
        layout="resnet20-12fca82f.th",
        files=_weights(
            "resnet20-12fca82f.th",
            "https://github.com/akamaster/pytorch_resnet_cifar10/raw/master/pretrained_models/resnet20-12fca82f.th",
            1_099_231,
            "12fca82f0bebc4135bf1f32f6e3710e61d5108578464b84fd6d7f5c1b04036c8",
        ),
    ),
    Download(
        name="imagenet",
        title="ImageNet (ILSVRC 2012)",
        page="https://image-net.org/download",
        license="for research, after registration",
        layout="imagenet/train/n01440764/*.JPEG, …, and imagenet/val/ with the same folders",
        by_hand="register there, download ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar, "
        "and sort the images of both into one folder per class",
    ),
)
