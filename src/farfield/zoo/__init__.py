"""Every named encoding, one formula each, and how each head gets its parameters."""

from farfield.zoo.encoding import MOST_HEADS as MOST_HEADS
from farfield.zoo.encoding import SLOPE as SLOPE
from farfield.zoo.encoding import WIDTH as WIDTH
from farfield.zoo.encoding import Encoding as Encoding
from farfield.zoo.encoding import Fixed as Fixed
from farfield.zoo.encoding import Parameter as Parameter
from farfield.zoo.encoding import PerHead as PerHead
from farfield.zoo.encoding import Value as Value
from farfield.zoo.encoding import number as number
from farfield.zoo.encoding import require_parameters as require_parameters
from farfield.zoo.encoding import slopes as slopes
from farfield.zoo.finding import bound_formula as bound_formula
from farfield.zoo.finding import find as find
from farfield.zoo.learned import Learned as Learned
from farfield.zoo.named import T5_BUCKET as T5_BUCKET
from farfield.zoo.named import T5_BUCKETS as T5_BUCKETS
from farfield.zoo.registry import ENCODINGS as ENCODINGS
from farfield.zoo.registry import register as register
