from . import measure as measure
from . import nn as nn
from .formula import Formula as Formula
from .formula import FormulaError as FormulaError
from .formula import parse as parse
from .measure.perplexity import evaluate as evaluate
from .nn.cache.bounded import bound as bound
from .nn.cache.cache import BoundedCache as BoundedCache
from .study.conduct import study as study
from .theory.fields.comparison import compare as compare
from .theory.fields.design import design as design
from .theory.fields.law import law as law
from .theory.fields.layers import layer as layer
from .theory.fields.layers import model_reach as model_reach
from .theory.fields.receptive import leak as leak
from .theory.fields.receptive import reach as reach
from .theory.fields.receptive import trf as trf
from .theory.fields.windows import windows as windows
from .theory.sums.series import series as series
from .theory.verdict.convergence import Verdict as Verdict
from .theory.verdict.convergence import check as check
from .training.run import train as train
from .zoo import ENCODINGS as ENCODINGS
from .zoo import Encoding as Encoding
from .zoo import find as find

__version__: str
